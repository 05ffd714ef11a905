//! 32-bit code of ring 3.

use super::assemble::FIRST_DATA;
use iced_x86::IcedError;
use iced_x86::code_asm::*;
use program_format::layout::{address, selector, vector};

/// A loop of instructions by number, which ends with the interrupt that leaves ring 3.
///
/// # Errors
/// None that is known.
pub fn code(list: &[u8], count: u8) -> Result<Vec<u8>, IcedError> {
    let mut a = CodeAssembler::new(32)?;
    let (mut head, mut function) = (a.create_label(), a.create_label());
    let data = address(FIRST_DATA) as i32;
    // Entering ring 3 has emptied what ring 0 had there.
    a.mov(eax, i32::from(selector::USER_DATA))?;
    a.mov(ds, ax)?;
    a.mov(es, ax)?;
    a.mov(ebx, i32::from(count))?;
    a.set_label(&mut head)?;
    a.nop()?;
    for (index, &number) in list.iter().enumerate() {
        let at = data + 4096 * (index as i32 + 1) - i32::from(number % 8);
        match number % 12 {
            0 => a.mov(eax, dword_ptr(at)),
            1 => a.mov(dword_ptr(at), eax),
            2 => a.add(dword_ptr(at), edx),
            3 => a.pushad().and_then(|()| a.popad()),
            4 => a.call(function),
            5 => {
                a.mov(esi, at)?;
                a.mov(edi, at + 4096)?;
                a.mov(ecx, i32::from(number))?;
                a.rep().movsd()
            }
            6 => a.push(dword_ptr(at)).and_then(|()| a.pop(eax)),
            7 => a.int(i32::from(vector::SERVICE)),
            8 => a.lock().inc(dword_ptr(at)),
            9 => a.mov(ax, word_ptr(at)),
            10 => a.fld(qword_ptr(at)),
            _ => a.ud2(),
        }?;
    }
    a.dec(ebx)?;
    a.jne(head)?;
    a.int(i32::from(vector::LEAVE))?;
    a.set_label(&mut function)?;
    a.inc(edx)?;
    a.ret()?;
    a.assemble(0)
}
