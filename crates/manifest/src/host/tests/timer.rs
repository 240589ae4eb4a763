//! Harts without timers of their own.
use super::*;

#[test]
fn harts_without_sstc_want_their_own_build() {
    for (cpu, has_sstc) in [
        ("rv64", true),
        ("rv64,sstc=off", false),
        ("rv64,sstc=off,sstc=on", true),
        ("rv64i,g=on,h=on,c=on,s=on,u=on,sv39=on", false),
        ("rva23s64", true),
    ] {
        let manifest = parse(&GOOD.replacen("harts = 4", &format!("cpu = {cpu:?}\nharts = 4"), 1)).unwrap();
        assert_eq!(manifest.board.has_sstc(), has_sstc, "{cpu}");
        assert_eq!(manifest.needs().without_sstc, !has_sstc, "{cpu}");
    }
}
