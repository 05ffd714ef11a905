//! When a set is bound and released: `at-us`, `at-marker`, `until-us`, `until-marker` and `wait`.

use protocol::count::{Schedule, When};
use toml::Spanned;

/// The keys of a set, as written.
#[derive(Clone, Debug)]
pub struct Moments {
    pub at: [Option<Spanned<u64>>; 2],
    pub until: [Option<Spanned<u64>>; 2],
    pub wait: bool,
}

/// The schedule that the keys say.
///
/// # Errors
/// What is wrong, with its place in the file.
pub fn schedule(keys: &Moments) -> Result<Schedule, (std::ops::Range<usize>, String)> {
    Ok(Schedule {
        at: moment("at", &keys.at)?,
        until: moment("until", &keys.until)?,
        wait: keys.wait,
    })
}

fn moment(
    which: &str,
    [us, marker]: &[Option<Spanned<u64>>; 2],
) -> Result<Option<When>, (std::ops::Range<usize>, String)> {
    match (us, marker) {
        (Some(_), Some(marker)) => {
            let message =
                format!("{which}-us and {which}-marker are both given; a set has one of them");
            Err((marker.span(), message))
        }
        (Some(us), None) => Ok(Some(When::Microseconds(*us.get_ref()))),
        (None, Some(marker)) => {
            let number = u32::try_from(*marker.get_ref()).map_err(|_| {
                let number = marker.get_ref();
                let message = format!("{which}-marker is {number}; EAX holds 0 to {}", u32::MAX);
                (marker.span(), message)
            })?;
            Ok(Some(When::Marker(number)))
        }
        (None, None) => Ok(None),
    }
}
