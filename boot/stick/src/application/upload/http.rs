//! HTTP's PUT (UEFI specification 29.6, EFI_HTTP_PROTOCOL). The helper of the crate `uefi` sends no length, without which servers
//! take no content.

use super::super::time::Deadline;
use super::UploadError;
use super::child::Child;
use alloc::ffi::CString;
use alloc::format;
use alloc::string::ToString;
use core::ffi::CStr;
use core::ptr::NonNull;
use core::time::Duration;
use stick::upload::Target;
use uefi::boot::ScopedProtocol;
use uefi::proto::network::http::{Http, HttpBinding};
use uefi::{CString16, Handle, Status, boot};
use uefi_raw::protocol::network::http::{
    HttpAccessPoint, HttpConfigData, HttpHeader, HttpMessage, HttpMethod, HttpRequestData,
    HttpRequestOrResponse, HttpResponseData, HttpStatusCode, HttpToken, HttpV4AccessPoint,
    HttpVersion,
};

/// For the request, and for its answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// The same for the firmware, in its unit.
const PATIENCE_MS: u32 = PATIENCE.as_secs() as u32 * 1000;

/// Puts `report` to `url`.
pub fn put(card: Handle, target: &Target, url: &str, report: &[u8]) -> Result<(), UploadError> {
    let child = Child::<HttpBinding>::new(card).map_err(|_| UploadError::NoDriver("HTTP"))?;
    let http = child.open::<Http>().map_err(|_| UploadError::NoDriver("HTTP"))?;
    let mut connection = Connection(http);
    connection.configure()?;
    connection.request(target, url, report)?;
    let status = connection.answer()?;
    let is_success = HttpStatusCode::STATUS_200_OK.0..=HttpStatusCode::STATUS_206_PARTIAL_CONTENT.0;
    if is_success.contains(&status.0) { Ok(()) } else { Err(UploadError::Refused(words(status))) }
}

/// A status as HTTP writes it.
fn words(status: HttpStatusCode) -> alloc::string::String {
    if status == HttpStatusCode::STATUS_UNSUPPORTED {
        return "with a status that the firmware does not know".to_string();
    }
    format!("{status:?}").trim_start_matches("STATUS_").replace('_', " ")
}

/// Open as long as the protocol's instance is there.
struct Connection(ScopedProtocol<Http>);

impl Connection {
    fn configure(&mut self) -> Result<(), UploadError> {
        let mut node = HttpV4AccessPoint { use_default_addr: true.into(), ..Default::default() };
        let config = HttpConfigData {
            http_version: HttpVersion::HTTP_VERSION_11,
            time_out_millisec: PATIENCE_MS,
            local_addr_is_ipv6: false.into(),
            access_point: HttpAccessPoint { ipv4_node: &raw mut node },
        };
        let configured = self.0.configure(&config);
        configured.map_err(|error| UploadError::Firmware("HTTP", error.status()))
    }

    fn request(&mut self, target: &Target, url: &str, report: &[u8]) -> Result<(), UploadError> {
        let wide = CString16::try_from(url).expect("a URL is ASCII");
        let data = HttpRequestData { method: HttpMethod::PUT, url: wide.as_ptr().cast() };
        let text = |text: &str| CString::new(text).expect("no zero is in it");
        let (host, length) = (text(&target.server()), text(&report.len().to_string()));
        let fields: [(&CStr, &CStr); 4] = [
            (c"Host", &host),
            (c"Content-Length", &length),
            (c"Content-Type", c"application/x-ndjson"),
            (c"Connection", c"close"),
        ];
        let mut headers = fields.map(|(name, value)| HttpHeader {
            field_name: name.as_ptr().cast(),
            field_value: value.as_ptr().cast(),
        });
        let mut message = HttpMessage {
            data: HttpRequestOrResponse { request: &raw const data },
            header_count: headers.len(),
            header: headers.as_mut_ptr(),
            body_length: report.len(),
            // It is read only.
            body: report.as_ptr().cast_mut().cast(),
        };
        let mut token = token(&mut message);
        let started = self.0.request(&mut token);
        started.map_err(|error| UploadError::Firmware("the request", error.status()))?;
        match self.wait(&mut token, "the request")? {
            Status::SUCCESS => Ok(()),
            status => Err(UploadError::Firmware("the request", status)),
        }
    }

    fn answer(&mut self) -> Result<HttpStatusCode, UploadError> {
        let mut data = HttpResponseData { status_code: HttpStatusCode::STATUS_UNSUPPORTED };
        let mut message = HttpMessage {
            data: HttpRequestOrResponse { response: &raw mut data },
            ..HttpMessage::default()
        };
        let mut token = token(&mut message);
        let started = self.0.response(&mut token);
        started.map_err(|error| UploadError::Firmware("the answer", error.status()))?;
        let status = self.wait(&mut token, "the answer")?;
        free_headers(&message);
        match status {
            // Statuses from 400 on are an error to it, and are there all the same.
            Status::SUCCESS | Status::HTTP_ERROR => Ok(data.status_code),
            status => Err(UploadError::Firmware("the answer", status)),
        }
    }

    /// Waits until the firmware is done with `token`.
    fn wait(&mut self, token: &mut HttpToken, what: &'static str) -> Result<Status, UploadError> {
        let deadline = Deadline::after(PATIENCE);
        let deadline = deadline.map_err(|error| UploadError::Firmware(what, error.status()))?;
        loop {
            // The firmware writes it.
            // SAFETY: a field of a structure that lives.
            let status = unsafe { (&raw const token.status).read_volatile() };
            if status != Status::NOT_READY {
                return Ok(status);
            }
            if deadline.is_over() {
                let _ = self.0.cancel(token);
                return Err(UploadError::Late(what, PATIENCE.as_secs()));
            }
            // It answers NOT_READY when nothing has come.
            let _ = self.0.poll();
        }
    }
}

fn token(message: &mut HttpMessage) -> HttpToken {
    HttpToken { status: Status::NOT_READY, message: &raw mut *message, ..HttpToken::default() }
}

/// The firmware allocates the headers of an answer, and leaves them to the caller.
fn free_headers(message: &HttpMessage) {
    let Some(headers) = NonNull::new(message.header) else { return };
    for index in 0..message.header_count {
        // SAFETY: the firmware wrote so many.
        let header = unsafe { headers.add(index).as_ref() };
        for field in [header.field_name, header.field_value] {
            // SAFETY: from the firmware's pool, and nobody else's any more.
            let _ = NonNull::new(field.cast_mut())
                .map(|field| unsafe { boot::free_pool(field.cast()) });
        }
    }
    // SAFETY: as above.
    let _ = unsafe { boot::free_pool(headers.cast()) };
}
