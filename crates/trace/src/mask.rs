//! Which kinds of records are written.

use crate::record::Kind;

/// A set of [`Kind`]s, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mask(pub u32);

/// What is recorded unless something else is asked for: all that the tracks of a trace need. Messages, of interest
/// only to those who work on the hypervisor, come with almost every other record and are left out.
pub const DEFAULT_MASK: Mask = Mask::ALL.without(Kind::Posted).without(Kind::Received);

impl Mask {
    /// No kind.
    pub const NONE: Self = Self(0);
    /// Every kind.
    pub const ALL: Self = Self((1 << Kind::ALL.len()) - 1);

    /// This set and `kind`.
    pub const fn with(self, kind: Kind) -> Self {
        Self(self.0 | 1 << kind as u32)
    }

    /// This set but for `kind`.
    pub const fn without(self, kind: Kind) -> Self {
        Self(self.0 & !(1 << kind as u32))
    }

    /// Whether `kind` is in the set.
    #[inline]
    pub const fn has(self, kind: Kind) -> bool {
        self.0 >> kind as u32 & 1 != 0
    }

    /// The union of what the names mean: kinds by [`Kind::name`], `default` for [`DEFAULT_MASK`], `all`.
    ///
    /// # Errors
    /// The first name that means nothing.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, &'a str> {
        names.into_iter().try_fold(Self::NONE, |mask, name| {
            let Self(bits) = Self::named(name).ok_or(name)?;
            Ok(Self(mask.0 | bits))
        })
    }

    /// Every name that [`Self::from_names`] understands.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ["default", "all"].into_iter().chain(Kind::ALL.iter().map(|kind| kind.name()))
    }

    fn named(name: &str) -> Option<Self> {
        match name {
            "default" => Some(DEFAULT_MASK),
            "all" => Some(Self::ALL),
            _ => Kind::ALL.iter().find(|kind| kind.name() == name).map(|&kind| Self::NONE.with(kind)),
        }
    }
}
