//! The distribution's own `perf` on its own kernel, with the emulated PMU beneath. Skipped where the packages cannot be had.

use pmu_model::Model;
use qemu_tests::stock_linux::known::{Kind, Program};
use qemu_tests::stock_linux::machine::Machine;
use qemu_tests::stock_linux::steps::Step;
use qemu_tests::stock_linux::{kernel_log, perf};

#[test]
fn probe() {
    let program = Program { kind: Kind::Loop, rounds: 1000 };
    let steps = [
        Step::new("stat", &format!("perf stat -x, {}", program.command())),
        Step::new("log", "dmesg -r"),
    ];
    let model = std::env::var("MODEL").unwrap_or("none".into());
    let console = Machine::new(Model::by_name(&model).unwrap()).run_steps(&steps).unwrap();
    println!("{}", console.0);
    println!("{:?}", kernel_log::complaints(&console.output("log")));
    println!("{:?}", perf::counts(&console.output("stat")));
}
