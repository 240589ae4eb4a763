//! QEMU ended before the machine ran: what it said, and which part of the manifest that is about.
use ainori_manifest::Board;
use miette::{Report, miette};

/// An error with QEMU's own words, and with what can be done about them.
pub fn refusal(messages: &[String], status: &str, board: &Board) -> Report {
    // Its other lines are warnings, or continue what the first one says.
    let told = messages.iter().find(|line| line.starts_with(super::qemu::PROGRAM)).or(messages.first());
    let said: String = match told {
        Some(_) => messages.iter().take(5).map(|line| format!("\n  {line}")).collect(),
        None => " It printed nothing.".into(),
    };
    let help = explain(told.map_or("", |line| line), board);
    miette!(help = help, "QEMU ended ({status}) before the machine ran.{said}")
}

fn explain(message: &str, board: &Board) -> String {
    let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let Board { cpu, harts, memory, .. } = board;
    if has(&["SMP", "-smp", "CPUs"]) {
        format!("this QEMU can't have `harts = {harts}` in [board]")
    } else if has(&["guest memory", "RAM size", "ram size", "memory-backend", "allocate memory"]) {
        let memory = ainori_manifest::show_size(*memory);
        format!("this computer can't give the machine its `memory = \"{memory}\"` in [board]")
    } else if has(&["\" lock"]) {
        "another program, mostly another run, has this disk: end that one, or give this system a copy of the file".into()
    } else if has(&["host forwarding", "forwarding rule"]) {
        "the port of this computer has just been taken by another program: name another one in `forward`"
            .into()
    } else if has(&["plugin"]) {
        "the clock lockstep is a plugin of QEMU: it must be built (`make build`), and for this QEMU".into()
    } else if has(&["Property", "Expected key=value", "extension", "spec", "requires", "VLEN", "ELEN"]) {
        let model = cpu.split(',').next().unwrap_or_default();
        format!(
            "this QEMU can't have what follows the model in `cpu = \"{cpu}\"` in [board]: `{} -M virt -device {model}-riscv-cpu,help` lists \
             what it can",
            super::qemu::PROGRAM
        )
    } else if has(&["CPU", "cpu", "ISA"]) {
        format!(
            "`cpu = \"{cpu}\"` in [board] is no CPU of this QEMU, see `{} -cpu help`",
            super::qemu::PROGRAM
        )
    } else {
        "look at [board] in the manifest and at --qemu-arg; --record-dir keeps the whole command line".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ainori_manifest::Interrupts;

    /// What QEMU 10.0.2 says, and the key of the manifest that it is about.
    #[test]
    fn the_key_that_is_wrong_is_named() {
        let board = Board {
            machine: "qemu-virt".into(),
            cpu: "rv64,x=y".into(),
            harts: 600,
            memory: 1 << 40,
            interrupts: Interrupts::Plic,
        };
        for (said, key) in [
            (
                "can't apply global rv64-riscv-cpu.foo=true: Property 'rv64-riscv-cpu.foo' not found",
                "`cpu = \"rv64,x=y\"`",
            ),
            ("can't apply global rv64-riscv-cpu.vlen=3: Vector extension VLEN must be power of 2", "`cpu = "),
            (
                "can't apply global rv64-riscv-cpu.sstc=maybe: Parameter 'sstc' expects 'on' or 'off'",
                "`cpu = ",
            ),
            ("unable to find CPU model 'rv65'", "`cpu = "),
            ("Expected key=value format, found help.", "`cpu = "),
            ("Zve64d/V extensions require D extension", "`cpu = "),
            ("Invalid SMP CPUs 600. The max CPUs supported by machine 'virt' is 512", "`harts = 600`"),
            (
                "cannot set up guest memory 'riscv_virt_board.ram': Cannot allocate memory",
                "`memory = \"1024GiB\"`",
            ),
            ("Could not load plugin /x/lockstep.so: plugin requires API 9", "`make build`"),
            ("-drive x: Failed to get \"write\" lock", "another program"),
            ("-netdev user: Could not set up host forwarding rule 'tcp::22-:22'", "`forward`"),
            ("-foo: invalid option", "--qemu-arg"),
        ] {
            let line = format!("qemu-system-riscv64: {said}");
            let report = refusal(&[String::from("warning: x"), line], "exit status: 1", &board);
            let help = report.help().unwrap().to_string();
            assert!(help.contains(key), "{said}: {help}");
            assert!(report.to_string().contains(said), "{report}");
        }
        assert!(refusal(&[], "exit status: 1", &board).to_string().contains("It printed nothing"));
    }
}
