//! What kind of program a file is, from its first bytes.

use std::env::consts::ARCH;

use flott_core::{Error, Result};
use flott_jobmanager_core::platform;

/// How many bytes [`check`] needs.
pub(crate) const HEADER_BYTES: usize = 20;

/// Refuses what this machine cannot run, given the first bytes of a file.
pub(crate) fn check(head: &[u8]) -> Result<()> {
    if head.len() < HEADER_BYTES || !head.starts_with(b"\x7fELF") {
        let kind = if head.starts_with(b"#!") { " but a script" } else { "" };
        return Err(Error::input(format!(
            "not an ELF executable{kind}: a job is the binary of a Rust program that uses the crate flott, such as target/release/my-job"
        )));
    }
    let (is_64_bit, is_little_endian) = (head[4] == 2, head[5] == 1);
    let halfword = |at: usize| {
        let bytes = [head[at], head[at + 1]];
        if is_little_endian { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) }
    };
    const EXECUTABLE: u16 = 2;
    const POSITION_INDEPENDENT: u16 = 3;
    if !matches!(halfword(16), EXECUTABLE | POSITION_INDEPENDENT) {
        return Err(Error::input("not an ELF executable but an object or core file: submit the linked binary"));
    }
    let machine = machine_name(halfword(18));
    if machine == ARCH && is_64_bit {
        return Ok(());
    }
    let bits = if is_64_bit { "" } else { " (32 bit)" };
    Err(Error::input(format!(
        "binary for another machine: it is for {machine}{bits}, this cluster runs {}: build it for that target",
        platform()
    )))
}

/// Rust's name of an ELF machine number, where it has one.
fn machine_name(number: u16) -> String {
    let name = match number {
        3 => "x86",
        21 => "powerpc64",
        22 => "s390x",
        40 => "arm",
        62 => "x86_64",
        183 => "aarch64",
        243 => "riscv64",
        258 => "loongarch64",
        _ => return format!("ELF machine {number}"),
    };
    name.to_owned()
}

/// Something that passes for a binary of this machine.
#[cfg(test)]
pub(crate) fn example() -> Vec<u8> {
    use std::io::Read;

    let mut content = vec![0; HEADER_BYTES];
    let this_test = std::env::current_exe().unwrap();
    std::fs::File::open(this_test).unwrap().read_exact(&mut content).unwrap();
    content.extend((0..50_000_u32).map(|i| (i % 251) as u8));
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(class: u8, kind: u8, machine: u8) -> Vec<u8> {
        let mut head = b"\x7fELF".to_vec();
        head.extend_from_slice(&[class, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, kind, 0, machine, 0]);
        head
    }

    fn refusal(head: &[u8]) -> String {
        check(head).unwrap_err().to_string()
    }

    #[test]
    fn binaries_of_this_machine_are_accepted() {
        check(&example()).unwrap();
    }

    #[test]
    fn other_machines_are_named() {
        let (name, number) = if ARCH == "aarch64" { ("x86_64", 62) } else { ("aarch64", 183) };
        let error = refusal(&header(2, 3, number));
        assert!(error.contains(&format!("it is for {name}, this cluster runs {}", platform())), "{error}");
        assert!(refusal(&header(1, 2, 3)).contains("x86 (32 bit)"));
        assert!(refusal(&header(2, 2, 250)).contains("ELF machine 250"));
    }

    #[test]
    fn what_is_no_program_is_refused() {
        assert!(refusal(b"").starts_with("not an ELF executable"));
        assert!(refusal(b"#!/bin/sh\nexec java -jar job.jar\n").starts_with("not an ELF executable but a script"));
        assert!(refusal(&header(2, 1, 62)).contains("object or core file"));
        assert!(refusal(&header(2, 3, 62)[..19]).starts_with("not an ELF executable"));
    }
}
