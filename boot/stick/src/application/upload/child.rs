//! A driver's instance for one connection (UEFI specification 11.6, EFI_SERVICE_BINDING_PROTOCOL).

use super::super::cards;
use uefi::Handle;
use uefi::boot::ScopedProtocol;
use uefi::proto::Protocol;
use uefi::proto::network::http::HttpBinding;

/// What makes such instances.
pub trait Binding: Protocol {
    /// Creates one more child of the service.
    fn create(&mut self) -> uefi::Result<Handle>;
    /// One less.
    fn destroy(&mut self, child: Handle) -> uefi::Result;
}

impl Binding for HttpBinding {
    fn create(&mut self) -> uefi::Result<Handle> {
        self.create_child()
    }

    fn destroy(&mut self, child: Handle) -> uefi::Result {
        self.destroy_child(child)
    }
}

/// The instance; it is gone when this is.
pub struct Child<B: Binding> {
    binding: ScopedProtocol<B>,
    handle: Handle,
}

impl<B: Binding> Child<B> {
    /// For a card.
    pub fn new(card: Handle) -> uefi::Result<Self> {
        let mut binding = cards::open::<B>(card)?;
        let handle = binding.create()?;
        Ok(Self { binding, handle })
    }

    /// Its protocol, which must not be used when the instance is gone.
    pub fn open<P: Protocol>(&self) -> uefi::Result<ScopedProtocol<P>> {
        cards::open(self.handle)
    }
}

impl<B: Binding> Drop for Child<B> {
    fn drop(&mut self) {
        // If it stays, it stays until the boot loader ends all of this.
        let _ = self.binding.destroy(self.handle);
    }
}
