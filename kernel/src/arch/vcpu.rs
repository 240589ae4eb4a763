//! What is the same of a vCPU in all back ends: its general registers, and what follows from them.
use ainori_limits::cause::exception;

use super::back_end::VcpuState;
use super::trap::{Access, AccessKind, Exception};

/// Register numbers of the calling convention. Behind `a0` come the other arguments, up to `a7`.
pub(super) const A0: usize = 10;
pub(super) const A1: usize = 11;
const A2: usize = 12;
const A3: usize = 13;
const A4: usize = 14;
const A5: usize = 15;
const A6: usize = 16;
const A7: usize = 17;
/// Bytes of an ECALL.
const CALL_LENGTH: u8 = 4;

impl VcpuState {
    /// Guest-virtual address of the instruction to go on with.
    #[inline]
    pub fn pc(&self) -> u64 {
        self.context.pc
    }

    /// It goes on behind its present instruction, which takes so many bytes.
    #[inline]
    pub fn skip(&mut self, bytes: u8) {
        self.context.pc = self.context.pc.wrapping_add(u64::from(bytes));
    }

    /// The general registers; the first is 0.
    #[inline]
    pub fn registers(&self) -> &[u64; 32] {
        &self.context.x
    }

    /// A general register, by its number of five bits.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "no remainder is too large")]
    pub fn register(&self, number: u8) -> u64 {
        self.context.x[usize::from(number) % 32]
    }

    /// Changes a general register, by its number of five bits. The first stays 0.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "no remainder is too large")]
    pub fn set_register(&mut self, number: u8, value: u64) {
        if number != 0 {
            self.context.x[usize::from(number) % 32] = value;
        }
    }

    /// The arguments of its call to the SBI: `a0` to `a7`.
    #[inline(always)]
    pub fn arguments(&self) -> [u64; 8] {
        let x = &self.context.x;
        [x[A0], x[A1], x[A2], x[A3], x[A4], x[A5], x[A6], x[A7]]
    }

    /// It goes on behind its call, with these results: `a0` and `a1`.
    #[inline(always)]
    pub fn finish_call(&mut self, (a0, a1): (u64, u64)) {
        self.skip(CALL_LENGTH);
        (self.context.x[A0], self.context.x[A1]) = (a0, a1);
    }

    /// The same for a call of before SBI 0.2, whose result is `a0` alone.
    #[inline(always)]
    pub fn finish_legacy_call(&mut self, a0: u64) {
        self.skip(CALL_LENGTH);
        self.context.x[A0] = a0;
    }

    /// Gives the loaded guest the access fault that it would have got for this access from a machine of its own, which has nothing at the address.
    ///
    /// False if it has no trap handler that it could reach.
    pub fn deliver_access_fault(&mut self, access: &Access) -> bool {
        let cause = match access.kind() {
            AccessKind::Fetch if self.is_at_trap_vector() => return false,
            AccessKind::Fetch => exception::FETCH_ACCESS,
            AccessKind::Load => exception::LOAD_ACCESS,
            AccessKind::Store => exception::STORE_ACCESS,
        };
        self.deliver(Exception { cause: cause.into(), value: access.value })
    }
}
