//! TFTP's write request (UEFI specification 30.3, EFI_MTFTP4_PROTOCOL), which the crate `uefi` does not have. The PXE protocol's own
//! would send to port 69 alone.

use super::UploadError;
use super::child::{Binding, Child};
use alloc::ffi::CString;
use core::ffi::{c_char, c_void};
use core::ptr::{null, null_mut};
use stick::upload::{Scheme, Target};
use uefi::proto::unsafe_protocol;
use uefi::{Handle, Status, StatusExt};
use uefi_raw::protocol::driver::ServiceBindingProtocol;
use uefi_raw::{Boolean, Ipv4Address};

/// How often each packet is sent.
const TRIES: u16 = 5;
/// Seconds until it is sent again.
const TIMEOUT: u16 = 3;

/// Makes instances of [`Mtftp4`].
#[repr(transparent)]
#[unsafe_protocol("2fe800be-8f01-4aa6-946b-d71388e1833f")]
struct Mtftp4Binding(ServiceBindingProtocol);

impl Binding for Mtftp4Binding {
    fn create(&mut self) -> uefi::Result<Handle> {
        let mut child = null_mut();
        // SAFETY: the firmware's function, with its own table.
        let status = unsafe { (self.0.create_child)(&mut self.0, &mut child) };
        // SAFETY: the firmware's handle.
        let child = unsafe { Handle::from_ptr(child) };
        status.to_result()?;
        child.ok_or(Status::NOT_FOUND.into())
    }

    fn destroy(&mut self, child: Handle) -> uefi::Result {
        // SAFETY: as above; the handle is from it.
        unsafe { (self.0.destroy_child)(&mut self.0, child.as_ptr()) }.to_result()
    }
}

/// EFI_MTFTP4_CONFIG_DATA.
#[repr(C)]
struct Config {
    use_default_setting: Boolean,
    station: Ipv4Address,
    subnet_mask: Ipv4Address,
    local_port: u16,
    gateway: Ipv4Address,
    server: Ipv4Address,
    initial_server_port: u16,
    try_count: u16,
    timeout_value: u16,
}

/// EFI_MTFTP4_TOKEN.
#[repr(C)]
struct Token {
    status: Status,
    event: *mut c_void,
    override_data: *const c_void,
    filename: *const c_char,
    mode: *const c_char,
    option_count: u32,
    option_list: *const c_void,
    buffer_size: u64,
    buffer: *const u8,
    context: *const c_void,
    check_packet: *const c_void,
    timeout_callback: *const c_void,
    packet_needed: *const c_void,
}

/// EFI_MTFTP4_PROTOCOL; what is not called has no type.
#[repr(C)]
#[unsafe_protocol("78247c57-63db-4708-99c2-a8b4a9a61f6b")]
struct Mtftp4 {
    get_mode_data: *const c_void,
    configure: unsafe extern "efiapi" fn(this: *mut Self, config: *const Config) -> Status,
    get_info: *const c_void,
    parse_options: *const c_void,
    read_file: *const c_void,
    write_file: unsafe extern "efiapi" fn(this: *mut Self, token: *mut Token) -> Status,
    read_directory: *const c_void,
    poll: *const c_void,
}

/// Writes `report` to the file `name` of the server's folder.
pub fn write(card: Handle, target: &Target, name: &str, report: &[u8]) -> Result<(), UploadError> {
    let no_driver = |_| UploadError::NoDriver("TFTP");
    let child = Child::<Mtftp4Binding>::new(card).map_err(no_driver)?;
    let mut tftp = child.open::<Mtftp4>().map_err(no_driver)?;
    let this: *mut Mtftp4 = &raw mut *tftp;
    let none = Ipv4Address([0; 4]);
    let config = Config {
        use_default_setting: true.into(),
        station: none,
        subnet_mask: none,
        local_port: 0,
        gateway: none,
        server: Ipv4Address(target.address().expect("a URL for TFTP has one").octets()),
        initial_server_port: target.port.unwrap_or(Scheme::Tftp.port()),
        try_count: TRIES,
        timeout_value: TIMEOUT,
    };
    // SAFETY: the firmware's function with its own table; it copies the settings.
    match unsafe { (tftp.configure)(this, &raw const config) } {
        Status::SUCCESS => {}
        status => return Err(UploadError::Firmware("TFTP", status)),
    }
    let path = CString::new(target.path(name)).expect("a URL has no zero");
    let mut token = Token {
        status: Status::NOT_READY,
        // Without one, the call comes back when all is done.
        event: null_mut(),
        override_data: null(),
        filename: path.as_ptr(),
        mode: c"octet".as_ptr(),
        option_count: 0,
        option_list: null(),
        buffer_size: report.len() as u64,
        buffer: report.as_ptr(),
        context: null(),
        check_packet: null(),
        timeout_callback: null(),
        packet_needed: null(),
    };
    // SAFETY: as above; the token, and what it points to, live until it comes back. It reads the report and writes nothing to it.
    match unsafe { (tftp.write_file)(this, &raw mut token) } {
        // The server has acknowledged the last block.
        Status::SUCCESS => Ok(()),
        Status::TFTP_ERROR => Err(UploadError::Refused("with an error of TFTP".into())),
        Status::TIMEOUT => Err(UploadError::Late("the server", u64::from(TRIES * TIMEOUT))),
        status => Err(UploadError::Firmware("TFTP", status)),
    }
}
