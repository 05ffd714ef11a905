//! Machine code that calls functions by the System V convention.

/// Bytes between where RSP points at the start and the end of its memory area: the stack begins there, and so has the whole
/// area. `arch::memory::arena` has the same value, half of an area.
const TO_END: i32 = 512 << 10;
/// Registers of the first six arguments: opcodes of `mov r64, imm64`, with their prefixes.
const IN_REGISTERS: [[u8; 2]; 6] =
    [[0x48, 0xbf], [0x48, 0xbe], [0x48, 0xba], [0x48, 0xb9], [0x49, 0xb8], [0x49, 0xb9]];

/// Most arguments of a function.
pub const MAX_ARGUMENTS: usize = 64;

/// Code under construction.
#[derive(Debug, Default)]
pub struct Calls {
    code: Vec<u8>,
}

impl Calls {
    /// Moves RSP from the middle of its area to the end, where it is a multiple of 16.
    #[must_use]
    pub fn with_whole_stack() -> Self {
        // add rsp, imm32
        let mut code = vec![0x48, 0x81, 0xc4];
        code.extend_from_slice(&TO_END.to_le_bytes());
        Self { code }
    }

    /// Sets RSP to the end of a stack, a multiple of 16.
    #[must_use]
    pub fn with_stack(end: u64) -> Self {
        // mov rsp, imm64
        let mut code = vec![0x48, 0xbc];
        code.extend_from_slice(&end.to_le_bytes());
        Self { code }
    }

    /// Calls the function at `address` and takes its arguments off the stack again.
    #[must_use]
    pub fn call(mut self, address: u64, arguments: &[u64]) -> Self {
        let pushed = self.push(arguments);
        self.registers(arguments);
        // mov r11, imm64; xor eax, eax; call r11
        self.code.extend_from_slice(&[0x49, 0xbb]);
        self.code.extend_from_slice(&address.to_le_bytes());
        self.code.extend_from_slice(&[0x31, 0xc0, 0x41, 0xff, 0xd3]);
        if pushed > 0 {
            // add rsp, imm32
            self.code.extend_from_slice(&[0x48, 0x81, 0xc4]);
            self.code.extend_from_slice(&(8 * pushed).to_le_bytes());
        }
        self
    }

    /// Puts the arguments where a function finds them that is called directly after this.
    #[must_use]
    pub fn arguments(mut self, arguments: &[u64]) -> Self {
        self.push(arguments);
        self.registers(arguments);
        // xor eax, eax: no vector registers are used, which a function with `...` asks (psABI, 3.5.7).
        self.code.extend_from_slice(&[0x31, 0xc0]);
        self
    }

    /// The code.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.code
    }

    /// Pushes those that have no register, the last one first, so that RSP stays a multiple of 16. Returns how many words.
    fn push(&mut self, arguments: &[u64]) -> u32 {
        let rest = arguments.get(IN_REGISTERS.len()..).unwrap_or_default();
        let filler = (rest.len() % 2 == 1).then_some(0);
        for value in filler.into_iter().chain(rest.iter().rev().copied()) {
            // mov rax, imm64; push rax
            self.code.extend_from_slice(&[0x48, 0xb8]);
            self.code.extend_from_slice(&value.to_le_bytes());
            self.code.push(0x50);
        }
        rest.len().next_multiple_of(2) as u32
    }

    fn registers(&mut self, arguments: &[u64]) {
        for (register, value) in IN_REGISTERS.iter().zip(arguments) {
            self.code.extend_from_slice(register);
            self.code.extend_from_slice(&value.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "sysv64" fn check(
        a: u64,
        b: u64,
        c: u64,
        d: u64,
        e: u64,
        f: u64,
        g: u64,
        h: u64,
        i: u64,
    ) {
        assert_eq!([a, b, c, d, e, f, g, h, i], [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        CALLS.with(|calls| calls.set(calls.get() + 1));
    }

    std::thread_local! {
        static CALLS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }

    #[test]
    fn arguments_arrive_in_registers_and_on_an_aligned_stack() {
        let address = check as *const () as u64;
        // push rbx: the stack of a function is 8 off a multiple of 16; after the calls: pop rbx; ret
        let mut code = vec![0x53];
        code.extend(Calls::default().call(address, &[1, 2, 3, 4, 5, 6, 7, 8, 9]).finish());
        code.extend(Calls::default().call(address, &[1, 2, 3, 4, 5, 6, 7, 8, 9]).finish());
        code.extend([0x5b, 0xc3]);
        let rights = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        // SAFETY: fresh memory for the code, which is a function of the C ABI.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
            let memory = libc::mmap(std::ptr::null_mut(), 4096, rights, flags, -1, 0);
            assert_ne!(memory, libc::MAP_FAILED);
            std::ptr::copy_nonoverlapping(code.as_ptr(), memory.cast(), code.len());
            let function: extern "sysv64" fn() = std::mem::transmute(memory);
            function();
            libc::munmap(memory, 4096);
        }
        assert_eq!(CALLS.with(std::cell::Cell::get), 2);
    }
}
