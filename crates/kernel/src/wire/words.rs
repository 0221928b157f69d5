//! Closed lists of words. On the wire they are strings.

/// Declares an enum that is written as one of its words.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$note:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$note])* $variant),+ }

        impl $name {
            /// All words.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word on the wire.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> core::result::Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> core::result::Result<Self, D::Error> {
                struct Word;
                impl serde::de::Visitor<'_> for Word {
                    type Value = $name;
                    fn expecting(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                        out.write_str(concat!("one of ", stringify!($($word),+)))
                    }
                    fn visit_str<E: serde::de::Error>(self, word: &str) -> core::result::Result<Self::Value, E> {
                        match word {
                            $($word => core::result::Result::Ok($name::$variant),)+
                            other => core::result::Result::Err(E::unknown_variant(other, $name::WORDS)),
                        }
                    }
                }
                deserializer.deserialize_str(Word)
            }
        }
    };
}
