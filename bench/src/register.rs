//! The macro that registers benchmarks.

/// Registers benchmarks.
///
/// Each is written as a function of a name, with at most two things in its brackets:
///
/// - `n: u64 in [16, 256]`: a parameter of an unsigned type of at most 64 bits and the list of its values, an array or slice that
///   is known when the program is compiled. There is one benchmark for each, called `name/16` and `name/256`. It arrives in a register, so
///   the compiler does not know its value.
/// - `input: TYPE = EXPRESSION`: a value that is made before each run and dropped after it, neither of them measured. The
///   expression may use the parameter. Within the body, `input` is a `&mut TYPE`.
///
/// The body is what is measured. Its value goes through [`black_box`](crate::black_box()), which costs an instruction or two,
/// and is dropped within the measured function: a result with a heap of its own is better written into the input.
///
/// Names begin with the module's path, as those of tests do.
#[macro_export]
macro_rules! bench {
    () => {};
    ($(#[$meta:meta])* fn $name:ident() $body:block $($rest:tt)*) => {
        const _: () = {
            $(#[$meta])*
            extern "C-unwind" fn $name(_: u64) {
                let _ = $crate::black_box($body);
            }
            #[used]
            #[unsafe(link_section = "barecount")]
            static ENTRIES: [$crate::expansion::Entry; 1] =
                [$crate::expansion::Entry::new($crate::bench!(@name $name), $name)];
        };
        $crate::bench! { $($rest)* }
    };
    ($(#[$meta:meta])* fn $name:ident($parameter:ident: $kind:ident in $list:expr $(,)?) $body:block $($rest:tt)*) => {
        const _: () = {
            $(#[$meta])*
            extern "C-unwind" fn $name(parameter: u64) {
                let $parameter = parameter as $kind;
                let _ = $crate::black_box($body);
            }
            $crate::bench!(@entries $kind, $list,
                $crate::expansion::Entry::new($crate::bench!(@name $name), $name));
        };
        $crate::bench! { $($rest)* }
    };
    ($(#[$meta:meta])* fn $name:ident($input:ident: $made:ty = $make:expr $(,)?) $body:block $($rest:tt)*) => {
        const _: () = {
            static INPUT: $crate::expansion::Slot<$made> = $crate::expansion::Slot::new();
            extern "C-unwind" fn setup(_: u64) {
                INPUT.put($make);
            }
            $(#[$meta])*
            extern "C-unwind" fn $name(_: u64) {
                // SAFETY: the set-up ran before, the teardown has not yet, and nobody else knows the slot.
                let $input: &mut $made = unsafe { INPUT.get() };
                let _ = $crate::black_box($body);
            }
            $crate::bench!(@teardown);
            #[used]
            #[unsafe(link_section = "barecount")]
            static ENTRIES: [$crate::expansion::Entry; 1] =
                [$crate::expansion::Entry::new($crate::bench!(@name $name), $name)
                    .with_setup(setup, teardown)];
        };
        $crate::bench! { $($rest)* }
    };
    ($(#[$meta:meta])* fn $name:ident(
        $parameter:ident: $kind:ident in $list:expr, $input:ident: $made:ty = $make:expr $(,)?
    ) $body:block $($rest:tt)*) => {
        const _: () = {
            static INPUT: $crate::expansion::Slot<$made> = $crate::expansion::Slot::new();
            extern "C-unwind" fn setup(parameter: u64) {
                let $parameter = parameter as $kind;
                INPUT.put($make);
            }
            $(#[$meta])*
            #[allow(unused_variables)]
            extern "C-unwind" fn $name(parameter: u64) {
                let $parameter = parameter as $kind;
                // SAFETY: the set-up ran before, the teardown has not yet, and nobody else knows the slot.
                let $input: &mut $made = unsafe { INPUT.get() };
                let _ = $crate::black_box($body);
            }
            $crate::bench!(@teardown);
            $crate::bench!(@entries $kind, $list,
                $crate::expansion::Entry::new($crate::bench!(@name $name), $name)
                    .with_setup(setup, teardown));
        };
        $crate::bench! { $($rest)* }
    };
    (@name $name:ident) => {
        concat!(module_path!(), "::", stringify!($name))
    };
    (@teardown) => {
        extern "C-unwind" fn teardown(_: u64) {
            // SAFETY: the set-up filled it, and the run is over.
            unsafe { INPUT.empty() };
        }
    };
    (@entries $kind:ident, $list:expr, $entry:expr) => {
        const PARAMETERS: &[$kind] = &$list;
        // It arrives in a register.
        const _: () = assert!(
            $kind::MIN == 0 && $kind::BITS <= u64::BITS,
            "parameters are unsigned, and have at most 64 bits"
        );
        #[used]
        #[unsafe(link_section = "barecount")]
        static ENTRIES: [$crate::expansion::Entry; PARAMETERS.len()] = {
            let mut entries = [const { $entry }; PARAMETERS.len()];
            let mut at = 0;
            while at < PARAMETERS.len() {
                entries[at] = $entry.with_parameter(PARAMETERS[at] as u64);
                at += 1;
            }
            entries
        };
    };
}

/// Makes the program: once, in the bench target's own file. On the host it is a function `main`, which a file that is
/// `#![no_main]` lacks; the bare machine needs none.
#[cfg(not(barecount_bare))]
#[macro_export]
macro_rules! main {
    () => {
        #[unsafe(no_mangle)]
        extern "C" fn main() -> core::ffi::c_int {
            $crate::expansion::run()
        }
    };
}

/// Makes the program: once, in the bench target's own file. On the bare machine the firmware calls the registered functions.
/// Started under Linux, the program runs each of them a few times and ends, for Callgrind.
#[cfg(barecount_bare)]
#[macro_export]
macro_rules! main {
    () => {
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        extern "C" fn _start() -> ! {
            core::arch::naked_asm!("and rsp, -16", "call {}", sym $crate::expansion::start)
        }
    };
}
