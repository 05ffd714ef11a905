use super::*;
use protocol::bits::Bits;

fn intel(text: &str) -> Source<'_> {
    Source { part: Part::Body, text, syntax: Syntax::Intel, bits: Bits::SixtyFour, symbols: &[] }
}

fn messages(sources: &[Source]) -> Vec<Message> {
    match assemble(sources) {
        Err(Failed::Messages(messages)) => messages,
        other => panic!("{other:?}"),
    }
}

#[test]
fn both_dialects_side_by_side() {
    let att = Source {
        part: Part::Body,
        text: "addq %rbx, %rax",
        syntax: Syntax::Att,
        bits: Bits::SixtyFour,
        symbols: &[],
    };
    let codes = assemble(&[intel("add rax, rbx"), att, intel(""), intel("nop\nnop\n\n")]).unwrap();
    assert_eq!(codes, [vec![0x48, 0x01, 0xd8], vec![0x48, 0x01, 0xd8], vec![], vec![0x90, 0x90]]);
}

#[test]
fn labels_masks_braces_and_separators_work() {
    let codes = assemble(&[
        intel("2: dec rcx; jnz 2b"),
        intel("vaddps zmm0 {k1} {z}, zmm1, zmm2"),
        intel(".rept 3\nnop\n.endr"),
        intel("jmp here\nhere:"),
        intel("lea rax, [rip + there]\nthere: .byte 1"),
    ])
    .unwrap();
    assert_eq!(codes[0], [0x48, 0xff, 0xc9, 0x75, 0xfb]);
    assert_eq!(codes[1].len(), 6);
    assert_eq!(codes[2], [0x90; 3]);
    assert_eq!(codes[3], [0xeb, 0x00]);
    assert_eq!(codes[4], [0x48, 0x8d, 0x05, 0, 0, 0, 0, 1]);
}

#[test]
fn every_wrong_line_is_named() {
    let found = messages(&[
        intel("nop\nbogus rax\nnop"),
        intel("nop"),
        intel("mov rax, [rax + rbx*3]"),
        Source {
            part: Part::Body,
            text: "nop\n\naddq %rbx, %raxx",
            syntax: Syntax::Att,
            bits: Bits::SixtyFour,
            symbols: &[],
        },
    ]);
    let places: Vec<_> = found.iter().map(|m| (m.source, m.line)).collect();
    assert_eq!(places, [(0, 2), (2, 1), (3, 3)]);
    assert!(found[0].text.contains("bogus"), "{found:?}");
    assert!(found[2].text.contains("invalid register name"), "{found:?}");
}

#[test]
fn an_unknown_register_is_told_as_such() {
    let found = messages(&[intel("add rax, rbx"), intel("nop # rqxa\nadd rax, rqx")]);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].source, found[0].line, found[0].column), (1, 2, 10));
    assert_eq!(found[0].text, "`rqx` is neither a register nor a label of this snippet");
    assert!(messages(&[intel("call printf")])[0].text.contains("`printf`"));
}

#[test]
fn a_text_that_swallows_the_next_one_is_found() {
    let found = messages(&[intel("nop"), intel(".macro m\nnop"), intel("nop")]);
    assert!(found.iter().all(|message| message.source == 1), "{found:?}");
    let found = messages(&[intel(".section .data"), intel("nop")]);
    assert_eq!(found[0].source, 0);
    assert!(found[0].text.contains("section"), "{found:?}");
}

#[test]
fn the_same_label_in_two_snippets_is_no_conflict() {
    let codes = assemble(&[intel("top: jmp top"), intel("top: nop\njmp top")]).unwrap();
    assert_eq!(codes, [vec![0xeb, 0xfe], vec![0x90, 0xeb, 0xfd]]);
}

#[test]
fn a_text_of_ten_megabytes_is_refused_before_the_assembler_sees_it() {
    let text = "nop\n".repeat(10 << 18);
    assert!(messages(&[intel(&text)])[0].text.contains("at most 8388608"));
}

#[test]
fn a_thousand_texts_take_one_call() {
    let texts: Vec<String> = (0..1000).map(|i| format!("add rax, {i}")).collect();
    let sources: Vec<Source> = texts.iter().map(|text| intel(text)).collect();
    let codes = assemble(&sources).unwrap();
    assert_eq!(codes.len(), 1000);
    assert_eq!(codes[5], [0x48, 0x83, 0xc0, 5]);
}

#[test]
fn a_directive_that_asks_for_too_much_is_named_with_its_snippet_within_the_bounds() {
    for bad in [
        // Too much memory, code, and messages, in this order.
        ".rept 1000000000\nnop\n.endr",
        ".p2align 28",
        ".macro x\nx\nx\n.endm\nx",
    ] {
        let text = format!("nop\n{bad}");
        let found = messages(&[intel(".align 16; nop"), intel(&text), intel("nop")]);
        assert_eq!((found[0].source, found[0].line), (1, 2), "{bad}: {found:?}");
        assert!(found[0].text.contains("not assembled within"), "{bad}: {found:?}");
    }
}

#[test]
fn a_directive_that_reads_a_file_is_refused_before_the_assembler_sees_it() {
    for bad in
        [".incbin \"/dev/zero\"", "x: .INCBIN \"/etc/passwd\", 0, 4", ".include \"/dev/tty\""]
    {
        let text = format!("nop\n{bad}");
        let found = messages(&[intel("nop"), intel(&text)]);
        assert_eq!((found[0].source, found[0].line), (1, 2), "{bad}");
        assert!(found[0].text.contains("directives that read files are not taken"), "{found:?}");
    }
    // What only looks like one is taken.
    assert!(assemble(&[intel("nop # .incbin\n/* ; .include */ .ascii \"; .incbin\"")]).is_ok());
}

#[test]
fn what_a_job_may_need_lies_within_the_bounds() {
    // Sixteen bytes of text and one of code, so that the test is no longer than it must be.
    let long = ".byte 000000001\n".repeat(MAX_TEXT_BYTES / 16);
    let codes =
        assemble(&[intel(&long), intel(".rept 100000\nnop\n.endr"), intel(".skip 8000000")]);
    let lengths: Vec<usize> = codes.unwrap().iter().map(Vec::len).collect();
    assert_eq!(lengths, [MAX_TEXT_BYTES / 16, 100_000, 8_000_000]);
}
