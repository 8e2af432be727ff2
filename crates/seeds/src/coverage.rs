//! What runs met: a line that is empty is a blind spot.

/// What [`coverage!`](crate::coverage!) makes.
pub trait Counts: Default + Send {
    /// Names and counts.
    fn lines(&self) -> Vec<(&'static str, u64)>;

    /// Count `other` too.
    fn add(&mut self, other: &Self);
}

/// The struct `Coverage` with a public count for each name.
#[macro_export]
macro_rules! coverage {
    ($($(#[$about:meta])* $name:ident),* $(,)?) => {
        /// Counts of what happened.
        #[derive(Clone, Default)]
        pub struct Coverage { $($(#[$about])* pub $name: u64,)* }

        impl $crate::Counts for Coverage {
            fn lines(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name)),*]
            }

            fn add(&mut self, other: &Coverage) {
                $(self.$name += other.$name;)*
            }
        }
    };
}
