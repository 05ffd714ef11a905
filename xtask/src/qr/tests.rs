//! Tests of reading codes.

use super::*;
use image::{ImageFormat, Luma};
use protocol::digest::text::split;
use protocol::digest::{Item, Standing};
use protocol::record::digest::Figure;
use protocol::record::{End, Outcome};
use qrcodegen_no_heap::{QrCode, QrCodeEcc, Version};

fn digest(items: u32) -> Digest {
    let item = |index: u32| Item {
        index,
        name: format!("name {index}"),
        standing: if index == 0 { Standing::Missed } else { Standing::Measured },
        figures: ["tsc", "loads"]
            .map(|event| Figure {
                event: event.to_string(),
                value: Some(i64::from(index) * 7919 % 100_003),
                spread: Some(0),
            })
            .to_vec(),
        note: (index == 0).then(|| "tsc came to 0; expected at least 1".to_string()),
    };
    let end = End { failed: 1, measured: items - 1, ..End::without_items(Outcome::Fail) };
    let machine = ["a processor".to_string()];
    Digest { items: (0..items).map(item).collect(), ..Digest::new("job", &machine, &end) }
}

/// A code as a picture, with modules of so many pixels.
fn picture(text: &str, side: u32) -> GrayImage {
    let largest = Version::new(25);
    let (mut scratch, mut modules) = (vec![0; largest.buffer_len()], vec![0; largest.buffer_len()]);
    let ecc = QrCodeEcc::Medium;
    let code = QrCode::encode_text(
        text,
        &mut scratch,
        &mut modules,
        ecc,
        Version::MIN,
        largest,
        None,
        false,
    )
    .unwrap();
    let size = (code.size() as u32 + 8) * side;
    GrayImage::from_fn(size, size, |x, y| {
        let dark = code.get_module((x / side) as i32 - 4, (y / side) as i32 - 4);
        Luma([if dark { 40 } else { 210 }])
    })
}

fn saved(folder: &Path, name: &str, picture: &GrayImage, format: ImageFormat) -> PathBuf {
    let path = folder.join(name);
    picture.save_with_format(&path, format).unwrap();
    path
}

#[test]
fn pictures_and_texts_together_make_the_digest() {
    let folder = tempfile::tempdir().unwrap();
    // As many items as twelve codes hold.
    let (digest, parts) = (1..=30)
        .rev()
        .map(|tens| digest(10 * tens))
        .find_map(|digest| Some((split(&digest.pack(), 400)?, digest)))
        .map(|(parts, digest)| (digest, parts))
        .unwrap();
    assert!(parts.len() >= 5, "{}", parts.len());
    let (png, jpeg) = (ImageFormat::Png, ImageFormat::Jpeg);
    let mut files = vec![
        saved(folder.path(), "one.png", &picture(&parts[1], 3), png),
        // The name does not tell the form.
        saved(folder.path(), "two", &picture(&parts[0], 4), jpeg),
    ];
    // Two codes in one picture, turned upside down.
    let (left, right) = (picture(&parts[2], 3), picture(&parts[3], 3));
    let mut both = GrayImage::from_pixel(left.width() * 2 + 60, left.height() + 40, Luma([90]));
    image::imageops::overlay(&mut both, &left, 10, 20);
    image::imageops::overlay(&mut both, &right, i64::from(left.width()) + 40, 20);
    files.push(saved(folder.path(), "both.png", &image::imageops::rotate180(&both), png));
    let text = folder.path().join("text");
    std::fs::write(&text, format!("the rest:\n{}\n", parts[4..].join("\n").to_lowercase()))
        .unwrap();
    files.push(text);
    assert_eq!(read(&files).unwrap(), digest);
    let missing = read(&files[1..]).unwrap_err().to_string();
    assert!(
        missing.contains("text: 1 of ") && missing.ends_with("codes is missing: 2"),
        "{missing}"
    );
}

#[test]
fn a_photograph_with_noise_uneven_light_and_an_angle_is_read() {
    let text = split(&digest(20).pack(), 400).unwrap().remove(0);
    let sharp = picture(&text, 6);
    let side = sharp.width();
    let mut state = 1_u32;
    let photograph = GrayImage::from_fn(side + 200, side + 200, |x, y| {
        // Seen from the right: what is farther is smaller, and darker.
        let narrow = 1.0 - 0.00012 * f64::from(x);
        let from_x = (f64::from(x) - 100.0) * 1.04;
        let from_y = (f64::from(y) - f64::from(side + 200) / 2.0) / narrow + f64::from(side) / 2.0;
        let inside = from_x >= 0.0 && from_y >= 0.0;
        let seen = (inside && (from_x as u32) < side && (from_y as u32) < side)
            .then(|| sharp.get_pixel(from_x as u32, from_y as u32).0[0]);
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = f64::from(state >> 24) / 255.0 * 50.0 - 25.0;
        let light = 1.0 - 0.0003 * f64::from(x);
        Luma([(f64::from(seen.unwrap_or(70)) * light + noise).clamp(0.0, 255.0) as u8])
    });
    let read = of_picture(&DynamicImage::ImageLuma8(photograph)).unwrap();
    assert_eq!(read, text);
}

#[test]
fn what_holds_no_digest_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let blank = GrayImage::from_pixel(200, 200, Luma([128]));
    let blank = saved(folder.path(), "blank.png", &blank, ImageFormat::Png);
    let foreign = picture("https://example.org", 4);
    let foreign = saved(folder.path(), "foreign.png", &foreign, ImageFormat::Png);
    let cut = folder.path().join("cut.png");
    std::fs::write(&cut, &std::fs::read(&blank).unwrap()[..60]).unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "hello").unwrap();
    for (file, said) in [
        (blank, "0 QR codes were found"),
        (foreign, "1 QR codes were found in this picture, but none of barecount's"),
        (cut, "this picture cannot be read"),
        (text.clone(), "text: it has no text of barecount"),
        (folder.path().join("absent"), "cannot read"),
    ] {
        let error = read(std::slice::from_ref(&file)).unwrap_err().to_string();
        assert!(error.contains(said), "{}: {error}", file.display());
        assert!(error.contains(&file.display().to_string()), "{}: {error}", file.display());
    }
}

#[test]
fn the_digest_is_a_table_and_a_document() {
    let mut digest = digest(3);
    digest.items[1].name = "evil \u{1b}[31m".to_string();
    digest.left_out = 4;
    let plain = |text: String| anstream::adapter::strip_str(&text).to_string();
    let table = plain(table(&digest, crate::primitives::table::Width::of(100)));
    for text in [
        "a processor\n",
        "name 2",
        "15.838",
        "all equal",
        "item 0 (name 0): tsc came to 0; expected at least 1",
        "4 more items did not fit into the codes",
        "fail: 0 passed, 1 failed, 2 measured",
        "evil \\u{1b}[31m",
    ] {
        assert!(table.contains(text), "{text}: {table}");
    }
    let document: serde_json::Value = serde_json::from_str(&json(&digest)).unwrap();
    assert_eq!(document["exit_code"], 1);
    assert_eq!(document["items"][2]["figures"][1]["value"], 15838);
    assert_eq!(document["outcome"], "fail");
}
