//! Tagged unions: an object whose first key is `type`.
//!
//! serde's own internal tagging buffers the object to find the tag anywhere. Ours asks for it first, as both
//! languages write it, and streams the rest into the variant.

use core::fmt;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// The key `type`, and nothing else.
pub(crate) struct TypeKey;

impl<'de> Deserialize<'de> for TypeKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_identifier(TypeKey)
    }
}

impl Visitor<'_> for TypeKey {
    type Value = TypeKey;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("`type` as the first key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        if key == "type" {
            Ok(TypeKey)
        } else {
            Err(E::custom(format_args!("`type` must be the first key, found `{key}`")))
        }
    }
}

/// Declares a union of structs by their tags.
macro_rules! tagged {
    ($(#[$meta:meta])* $name:ident $(<$life:lifetime>)? { $($variant:ident($body:ty) = $tag:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
        #[serde(tag = "type")]
        #[allow(clippy::large_enum_variant, reason = "they are made once and moved once")]
        pub enum $name $(<$life>)? {
            $(
                #[doc = concat!("`", $tag, "`")]
                #[serde(rename = $tag)]
                $variant($body),
            )+
        }

        impl $(<$life>)? $name $(<$life>)? {
            /// The tags of all variants.
            pub const TAGS: &'static [&'static str] = &[$($tag),+];

            /// The tag of this one.
            #[must_use]
            pub fn tag(&self) -> &'static str {
                match self { $(Self::$variant(_) => $tag,)+ }
            }
        }

        const _: () = {
            struct Seen $(<$life>)? (core::marker::PhantomData<$(&$life)? ()>);

            impl<'de $(, $life)?> serde::de::Visitor<'de> for Seen $(<$life>)? {
                type Value = $name $(<$life>)?;

                fn expecting(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                    out.write_str(concat!("an object tagged as one of ", stringify!($($tag),+)))
                }

                fn visit_map<A: serde::de::MapAccess<'de>>(
                    self,
                    mut map: A,
                ) -> core::result::Result<Self::Value, A::Error> {
                    use serde::de::{Deserialize, Error, value::MapAccessDeserializer};
                    if map.next_key::<$crate::wire::tagged::TypeKey>()?.is_none() {
                        return core::result::Result::Err(A::Error::missing_field("type"));
                    }
                    let tag: &'de str = map.next_value()?;
                    let rest = MapAccessDeserializer::new(map);
                    match tag {
                        $($tag => <$body>::deserialize(rest).map($name::$variant),)+
                        other => core::result::Result::Err(A::Error::unknown_variant(other, $name::TAGS)),
                    }
                }
            }

            impl<'de $(, $life)?> serde::Deserialize<'de> for $name $(<$life>)? {
                fn deserialize<D: serde::Deserializer<'de>>(
                    deserializer: D,
                ) -> core::result::Result<Self, D::Error> {
                    deserializer.deserialize_map(Seen(core::marker::PhantomData))
                }
            }
        };
    };
}
