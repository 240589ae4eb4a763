//! The window in all that the hart walks.
use super::Shadow;
use crate::format::Format;
use crate::view::View;
use crate::window::{Opening, Window};
use crate::{Due, Tables, Virtual};

impl<T: Tables, V: View> Shadow<'_, T, V> {
    /// The window, if there is one.
    #[must_use]
    pub const fn window(&self) -> Option<Window> {
        if V::IS_DIVIDED { self.choices.window } else { None }
    }

    /// The window is to be in the next slot, as the guest wants something in this one: for that, all is forgotten.
    ///
    /// An instruction is fetched from two pages at most and loads or stores in two others, so it wants four slots at most: as the slots come in turn, the fourth move at the latest
    /// leads to one that it doesn't want, and there the window is while the instruction is made.
    ///
    /// While it is called, nobody is to need the window of the active root: afterwards it is in the new slot.
    pub fn move_window(&mut self) -> Due {
        self.choices.window = self.choices.window.map(Window::moved);
        self.forget_all()
    }

    /// The window's entry in roots of a format.
    #[inline(always)]
    pub(super) fn opening(&self, format: Format) -> Opening {
        self.window().map_or(Opening::NONE, |window| window.opening(format))
    }

    /// Is an address in the window?
    #[inline(always)]
    pub(super) fn is_in_window(&self, format: Format, address: Virtual) -> bool {
        let top = Format::index(address, format.levels() - 1);
        self.window().is_some_and(|window| usize::from(window.slot) == top)
    }
}
