//! Instructions that touch memory.

use iced_x86::code_asm::*;
use iced_x86::{Code, IcedError, Instruction, MemoryOperand, Register};

type Encode = fn(&mut CodeAssembler, AsmMemoryOperand) -> Result<(), IcedError>;

/// An instruction with one memory operand, which it may raise #GP for.
pub struct Form {
    /// What its address must be a multiple of.
    pub align: u16,
    pub encode: Encode,
}

const fn form(encode: Encode) -> Form {
    Form { align: 1, encode }
}

const fn aligned(align: u16, encode: Encode) -> Form {
    Form { align, encode }
}

/// Each width and direction, what is locked, what is both load and store, what is neither. None of them changes RSP, R12,
/// R14, R15, or how x87 and SSE exceptions are masked.
pub const FORMS: &[Form] = &[
    // Loads.
    form(|a, m| a.mov(rax, qword_ptr(m))),
    form(|a, m| a.mov(eax, dword_ptr(m))),
    form(|a, m| a.mov(ax, word_ptr(m))),
    form(|a, m| a.mov(al, byte_ptr(m))),
    form(|a, m| a.mov(sil, byte_ptr(m))),
    form(|a, m| a.movzx(r8d, word_ptr(m))),
    form(|a, m| a.movsx(r9, byte_ptr(m))),
    form(|a, m| a.movsxd(r10, dword_ptr(m))),
    form(|a, m| a.movbe(r8, qword_ptr(m))),
    form(|a, m| a.add(rax, qword_ptr(m))),
    form(|a, m| a.adc(edx, dword_ptr(m))),
    form(|a, m| a.cmp(qword_ptr(m), rcx)),
    form(|a, m| a.cmp(byte_ptr(m), 0x40)),
    form(|a, m| a.test(dword_ptr(m), eax)),
    form(|a, m| a.imul_2(r11, qword_ptr(m))),
    form(|a, m| a.mul(qword_ptr(m))),
    form(|a, m| a.cmovne(rdx, qword_ptr(m))),
    form(|a, m| a.bt(dword_ptr(m), 7).and_then(|()| define_flags(a))),
    form(|a, m| a.popcnt(rax, qword_ptr(m))),
    form(|a, m| a.bsf(rcx, qword_ptr(m))),
    form(|a, m| a.crc32(eax, dword_ptr(m))),
    form(|a, m| a.pextrb(byte_ptr(m), xmm1, 3)),
    // Stores.
    form(|a, m| a.mov(qword_ptr(m), rax)),
    form(|a, m| a.mov(dword_ptr(m), 0x1234_5678)),
    form(|a, m| a.mov(word_ptr(m), dx)),
    form(|a, m| a.mov(byte_ptr(m), cl)),
    form(|a, m| a.movbe(dword_ptr(m), eax)),
    form(|a, m| a.movnti(qword_ptr(m), rdx)),
    form(|a, m| a.setb(byte_ptr(m))),
    // Both.
    form(|a, m| a.add(qword_ptr(m), rax)),
    form(|a, m| a.sub(dword_ptr(m), 1)),
    form(|a, m| a.xor(byte_ptr(m), al)),
    form(|a, m| a.inc(word_ptr(m))),
    form(|a, m| a.neg(qword_ptr(m))),
    form(|a, m| a.not(dword_ptr(m))),
    form(|a, m| a.shl(qword_ptr(m), 1)),
    form(|a, m| a.ror(dword_ptr(m), cl)),
    form(|a, m| a.shld(qword_ptr(m), rax, 3)),
    form(|a, m| a.bts(dword_ptr(m), 9).and_then(|()| define_flags(a))),
    form(|a, m| a.xadd(qword_ptr(m), rax)),
    form(|a, m| a.cmpxchg(qword_ptr(m), rdx)),
    form(|a, m| a.cmpxchg8b(qword_ptr(m))),
    // Locked.
    form(|a, m| a.xchg(qword_ptr(m), rax)),
    form(|a, m| a.lock().inc(qword_ptr(m))),
    form(|a, m| a.lock().add(dword_ptr(m), edx)),
    form(|a, m| a.lock().xadd(qword_ptr(m), rcx)),
    form(|a, m| a.lock().cmpxchg(dword_ptr(m), edx)),
    form(|a, m| a.lock().bts(qword_ptr(m), 33).and_then(|()| define_flags(a))),
    form(|a, m| a.lock().xor(byte_ptr(m), al)),
    aligned(16, |a, m| a.cmpxchg16b(xmmword_ptr(m))),
    // Vectors.
    form(|a, m| a.movups(xmm0, xmmword_ptr(m))),
    form(|a, m| a.movups(xmmword_ptr(m), xmm1)),
    aligned(16, |a, m| a.movaps(xmm1, xmmword_ptr(m))),
    aligned(16, |a, m| a.movdqa(xmmword_ptr(m), xmm0)),
    // #GP where it is not aligned.
    form(|a, m| a.movaps(xmm2, xmmword_ptr(m))),
    aligned(16, |a, m| a.paddd(xmm1, xmmword_ptr(m))),
    aligned(16, |a, m| a.movntdq(xmmword_ptr(m), xmm2)),
    form(|a, m| a.lddqu(xmm3, xmmword_ptr(m))),
    form(|a, m| a.movq(xmm0, qword_ptr(m))),
    form(|a, m| a.movq(qword_ptr(m), xmm3)),
    form(|a, m| a.movd(xmm2, dword_ptr(m))),
    form(|a, m| a.movss(dword_ptr(m), xmm1)),
    form(|a, m| a.movlps(xmm1, qword_ptr(m))),
    form(|a, m| a.movhps(qword_ptr(m), xmm0)),
    form(|a, m| a.pinsrw(xmm0, word_ptr(m), 2)),
    form(|a, m| a.vmovups(ymm0, ymmword_ptr(m))),
    form(|a, m| a.vmovdqu(ymmword_ptr(m), ymm1)),
    form(|a, m| a.vpaddd(ymm1, ymm0, ymmword_ptr(m))),
    form(|a, m| a.vpbroadcastd(ymm2, dword_ptr(m))),
    form(|a, m| a.vinserti128(ymm1, ymm0, xmmword_ptr(m), 1)),
    form(|a, m| a.vextractf128(xmmword_ptr(m), ymm1, 1)),
    form(|a, m| a.stmxcsr(dword_ptr(m))),
    // x87.
    form(|a, m| a.fld(qword_ptr(m))),
    form(|a, m| a.fild(dword_ptr(m))),
    form(|a, m| a.fstp(dword_ptr(m))),
    // QEMU 10.0 takes 8 bytes from where they begin on for bytes of one page, if fewer than 8 of them are in the first of
    // two (`access_ptr`), unless a plugin looks at its accesses.
    aligned(8, |a, m| a.fstp(tbyte_ptr(m))),
    aligned(8, |a, m| a.fld(tbyte_ptr(m))),
    form(|a, m| a.fistp(qword_ptr(m))),
    form(|a, m| a.fnstcw(word_ptr(m))),
    form(|a, m| a.fnstsw(word_ptr(m))),
    aligned(8, |a, m| a.fbld(tbyte_ptr(m))),
    aligned(8, |a, m| a.fbstp(tbyte_ptr(m))),
    // Wider or narrower in memory than in the register.
    form(|a, m| a.cvtdq2pd(xmm0, qword_ptr(m))),
    form(|a, m| a.vcvtdq2pd(ymm1, xmmword_ptr(m))),
    form(|a, m| a.vcvtps2pd(ymm0, xmmword_ptr(m))),
    form(|a, m| a.vcvtpd2ps(xmm1, ymmword_ptr(m))),
    form(|a, m| a.pmovzxbq(xmm2, word_ptr(m))),
    form(|a, m| a.vpmovzxbw(ymm1, xmmword_ptr(m))),
    form(|a, m| a.vpmovsxbq(ymm0, dword_ptr(m))),
    form(|a, m| a.vbroadcastf128(ymm1, xmmword_ptr(m))),
    form(|a, m| a.vmovddup(ymm2, ymmword_ptr(m))),
    // Parts may be left out: which, the registers say.
    form(|a, m| a.vmaskmovps(xmm1, xmm0, xmmword_ptr(m))),
    form(|a, m| a.vpmaskmovd(ymmword_ptr(m), ymm0, ymm1)),
    form(|a, m| a.lea(rdi, ptr(m)).and_then(|()| a.maskmovdqu(xmm0, xmm1))),
    form(gather),
    // The address is not the operand's alone.
    form(|a, m| {
        a.mov(ecx, 77).and_then(|()| a.bts(dword_ptr(m), ecx)).and_then(|()| define_flags(a))
    }),
    form(|a, m| a.lea(rbx, ptr(m)).and_then(|()| a.xlatb())),
    form(enter),
    // #GP after its load: a selector beyond the table.
    form(|a, m| a.mov(word_ptr(m + 4), 0x7ff8).and_then(|()| a.jmp(fword_ptr(m)))),
    // The system's.
    form(|a, m| a.sgdt(fword_ptr(m))),
    form(|a, m| a.str(word_ptr(m))),
    // Nothing is touched.
    form(|a, m| a.lea(rdx, ptr(m))),
    form(|a, m| a.prefetcht0(byte_ptr(m))),
    form(|a, m| a.nop_1(dword_ptr(m))),
];

/// The number of the last form with an instruction of this name.
///
/// # Panics
/// If there is none.
pub fn named(name: &str) -> u8 {
    let has = |form: &Form| {
        let mut a = CodeAssembler::new(64).expect("64 bits");
        (form.encode)(&mut a, rdx.into()).expect("it can be encoded");
        let lower = |one: &Instruction| format!("{:?}", one.mnemonic()).to_lowercase();
        a.instructions().iter().any(|one| lower(one) == name)
    };
    let found = FORMS.iter().rposition(has);
    found.unwrap_or_else(|| panic!("no form has {name}")) as u8
}

/// Makes all flags what CF is, after BT and its kin: they leave OF, SF, AF and PF undefined, and QEMU's depend on what it
/// knows of the flags where it translates, so on where blocks begin.
pub fn define_flags(a: &mut CodeAssembler) -> Result<(), IcedError> {
    a.sbb(eax, eax)
}

/// Four elements, of which the mask leaves some out, all at one place.
fn gather(a: &mut CodeAssembler, m: AsmMemoryOperand) -> Result<(), IcedError> {
    a.lea(rdi, ptr(m))?;
    a.pxor(xmm2, xmm2)?;
    let from = MemoryOperand::with_base_index_scale(Register::RDI, Register::XMM2, 4);
    let (code, to) = (Code::VEX_Vpgatherdd_xmm_vm32x_xmm, Register::XMM3);
    a.add_instruction(Instruction::with3(code, to, from, Register::XMM1)?)
}

/// ENTER with the pointers of as many frames as there can be, which it copies: 30 loads and 32 stores.
fn enter(a: &mut CodeAssembler, _: AsmMemoryOperand) -> Result<(), IcedError> {
    a.push(rbp)?;
    a.mov(rbp, rsp)?;
    a.enter(16, 31)?;
    a.leave()?;
    a.pop(rbp)
}

/// How many kinds of [`save`] there are.
pub const SAVES: u8 = 8;

/// The alignment that a kind of [`save`] needs, and its instructions: state is stored and loaded again. XSAVE's area needs
/// a header that was never used, so that is cleared before.
pub fn save(
    a: &mut CodeAssembler,
    kind: u8,
    m: impl Fn(i32) -> AsmMemoryOperand,
) -> Result<(), IcedError> {
    if matches!(kind, 2..=4) {
        // Header: SDM vol. 1, 13.4.2.
        for offset in (512..576).step_by(8) {
            a.mov(qword_ptr(m(offset)), 0)?;
        }
        a.mov(eax, 7)?;
        a.xor(edx, edx)?;
    }
    match kind {
        0 => {
            a.fxsave(ptr(m(0)))?;
            a.fxrstor(ptr(m(0)))
        }
        1 => {
            a.fxsave64(ptr(m(0)))?;
            a.fxrstor64(ptr(m(0)))
        }
        2 => {
            a.xsave(ptr(m(0)))?;
            a.xrstor(ptr(m(0)))
        }
        3 => {
            a.xsaveopt(ptr(m(0)))?;
            a.mov(eax, 7)
        }
        4 => {
            a.xsave64(ptr(m(0)))?;
            a.xrstor64(ptr(m(0)))
        }
        5 => {
            a.fnstenv(ptr(m(0)))?;
            a.fldenv(ptr(m(0)))
        }
        6 => {
            a.fnsave(ptr(m(0)))?;
            a.frstor(ptr(m(0)))
        }
        _ => {
            a.stmxcsr(dword_ptr(m(0)))?;
            a.ldmxcsr(dword_ptr(m(0)))
        }
    }
}

/// What [`save`] needs its address to be a multiple of.
pub const SAVE_ALIGN: u16 = 64;
