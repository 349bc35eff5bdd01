//! About how much memory an object takes: its struct, its texts, its lists and its maps, from one walk without copying.

use serde::ser::{self, Serialize};
use std::fmt;

/// Beside each object: its place in the table, its key, its version, and its place among its owners.
pub(super) const BESIDE: usize = 320;
/// A node of a `BTreeMap` has room for eleven texts with their values, however few it holds.
const MAP_NODE: usize = 550;
/// What grows by insertion fills its nodes to about this.
const PER_NODE: usize = 8;
/// A text or list, without what is in it.
const HEADER: usize = 24;

/// About how many bytes an object takes, held in an `Arc` by a store.
pub(super) fn memory_size<K: Serialize>(object: &K) -> u32 {
    let mut scale = Scale { bytes: BESIDE + size_of::<K>() };
    // A type that cannot be written counts as what was measured until then.
    let _ = object.serialize(&mut scale);
    u32::try_from(scale.bytes).unwrap_or(u32::MAX)
}

struct Scale {
    bytes: usize,
}

impl Scale {
    fn text(&mut self, length: usize) {
        if length > 0 {
            self.bytes += (length + 8).next_multiple_of(16);
        }
    }
}

/// Why a type could not be walked; nobody looks.
#[derive(Debug)]
struct Unmeasurable;

impl fmt::Display for Unmeasurable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot be written")
    }
}

impl std::error::Error for Unmeasurable {}

impl ser::Error for Unmeasurable {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

macro_rules! inline {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, _: $type) -> Result<(), Unmeasurable> { Ok(()) })*
    };
}

impl<'a> ser::Serializer for &'a mut Scale {
    type Ok = ();
    type Error = Unmeasurable;
    type SerializeSeq = Inside<'a>;
    type SerializeTuple = Inside<'a>;
    type SerializeTupleStruct = Inside<'a>;
    type SerializeTupleVariant = Inside<'a>;
    type SerializeMap = Inside<'a>;
    type SerializeStruct = Inside<'a>;
    type SerializeStructVariant = Inside<'a>;

    inline!(serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_f32: f32,
        serialize_f64: f64, serialize_char: char, serialize_unit_struct: &'static str);

    fn serialize_str(self, text: &str) -> Result<(), Unmeasurable> {
        self.text(text.len());
        Ok(())
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, _: &T) -> Result<(), Unmeasurable> {
        // Times and such: held as numbers.
        Ok(())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), Unmeasurable> {
        self.text(bytes.len());
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Unmeasurable> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Unmeasurable> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Unmeasurable> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Unmeasurable> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Unmeasurable> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Unmeasurable> {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Inside<'a>, Unmeasurable> {
        Ok(Inside { scale: self, of: Of::List, count: 0 })
    }

    fn serialize_tuple(self, _: usize) -> Result<Inside<'a>, Unmeasurable> {
        Ok(Inside { scale: self, of: Of::Fields, count: 0 })
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Inside<'a>, Unmeasurable> {
        Ok(Inside { scale: self, of: Of::Fields, count: 0 })
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Inside<'a>, Unmeasurable> {
        Ok(Inside { scale: self, of: Of::Fields, count: 0 })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Inside<'a>, Unmeasurable> {
        Ok(Inside { scale: self, of: Of::Map, count: 0 })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Inside<'a>, Unmeasurable> {
        Ok(Inside { scale: self, of: Of::Fields, count: 0 })
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Inside<'a>, Unmeasurable> {
        Ok(Inside { scale: self, of: Of::Fields, count: 0 })
    }
}

/// What holds the parts that are being measured.
enum Of {
    /// In one piece of memory, whose size is not said to whoever writes it.
    List,
    Map,
    /// Within the object itself, or within a list's piece.
    Fields,
}

struct Inside<'a> {
    scale: &'a mut Scale,
    of: Of,
    count: usize,
}

impl Inside<'_> {
    fn part<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unmeasurable> {
        match self.of {
            // Lists of objects are lists of structs, in which size_of_val sees all fields, there or not.
            Of::List => self.scale.bytes += size_of_val(value).max(HEADER),
            Of::Map if self.count.is_multiple_of(PER_NODE) => self.scale.bytes += MAP_NODE,
            Of::Map | Of::Fields => {}
        }
        self.count += 1;
        value.serialize(&mut *self.scale)
    }
}

macro_rules! parts {
    ($($trait:ident $method:ident),*) => {
        $(impl ser::$trait for Inside<'_> {
            type Ok = ();
            type Error = Unmeasurable;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unmeasurable> {
                self.part(value)
            }

            fn end(self) -> Result<(), Unmeasurable> {
                Ok(())
            }
        })*
    };
}

parts!(SerializeSeq serialize_element, SerializeTuple serialize_element, SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field);

impl ser::SerializeMap for Inside<'_> {
    type Ok = ();
    type Error = Unmeasurable;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Unmeasurable> {
        key.serialize(&mut *self.scale)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unmeasurable> {
        self.part(value)
    }

    fn end(self) -> Result<(), Unmeasurable> {
        Ok(())
    }
}

macro_rules! fields {
    ($($trait:ident),*) => {
        $(impl ser::$trait for Inside<'_> {
            type Ok = ();
            type Error = Unmeasurable;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, value: &T) -> Result<(), Unmeasurable> {
                self.part(value)
            }

            fn end(self) -> Result<(), Unmeasurable> {
                Ok(())
            }
        })*
    };
}

fields!(SerializeStruct, SerializeStructVariant);

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;

    fn map(text: &str) -> ConfigMap {
        ConfigMap { data: Some([("key".to_owned(), text.to_owned())].into()), ..ConfigMap::default() }
    }

    #[test]
    fn an_object_weighs_its_struct_and_what_hangs_from_it() {
        let empty = memory_size(&ConfigMap::default()) as usize;
        // Its names are written too, and take no memory.
        assert!((0..64).contains(&(empty - BESIDE - size_of::<ConfigMap>())), "{empty}");
        let small = memory_size(&map("x")) as usize;
        assert_eq!(small, empty + MAP_NODE + 16 + 16);
        let large = memory_size(&map(&"x".repeat(100_000))) as usize;
        assert!((99_000..101_000).contains(&(large - small)), "{large}");
    }
}
