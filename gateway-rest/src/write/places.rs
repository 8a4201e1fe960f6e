//! Finds the fields of a message, which may be in any order on the wire.

use std::ops::Range;

use crate::{
    shape::{Field, Shape},
    wire::{Input, Malformed, Value, Wire},
};

/// The number of fields up to which a message needs no allocation.
const USUAL: usize = 48;

/// The position of a field in its message.
#[derive(Clone, Copy, Default)]
pub(super) struct FieldPosition {
    /// The number of occurrences.
    pub(super) count: u32,
    /// The start of the tag of the first occurrence.
    start: u32,
    /// The start of the value of the last occurrence.
    value: u32,
    /// The end of the last occurrence.
    end: u32,
}

impl FieldPosition {
    fn range(from: u32, to: u32) -> Range<usize> {
        from as usize..to as usize
    }

    pub(super) fn last(self) -> Range<usize> {
        Self::range(self.value, self.end)
    }

    pub(super) fn all(self) -> Range<usize> {
        Self::range(self.start, self.end)
    }
}

pub(super) fn with_places<T>(
    shape: &Shape,
    proto: &[u8],
    then: impl FnOnce(&[FieldPosition]) -> Result<T, Malformed>,
) -> Result<T, Malformed> {
    let (mut usual, mut many);
    let places = if shape.fields.len() <= USUAL {
        usual = [FieldPosition::default(); USUAL];
        usual.get_mut(..shape.fields.len()).ok_or(Malformed)?
    } else {
        many = vec![FieldPosition::default(); shape.fields.len()];
        &mut many[..]
    };
    let at = |input: Input<'_>| u32::try_from(proto.len() - input.0.len()).map_err(|_| Malformed);
    let mut input = Input(proto);
    while !input.is_empty() {
        let start = at(input)?;
        let (number, wire) = input.tag()?;
        let value = at(input)?;
        input.value(wire)?;
        let place = shape.numbered(number).and_then(|position| {
            let field = shape.fields.get(position)?;
            fits(field, wire).then(|| places.get_mut(position))?
        });
        if let Some(place) = place {
            if place.count == 0 {
                place.start = start;
            }
            *place = FieldPosition { count: place.count + 1, value, end: at(input)?, ..*place };
        }
    }
    then(places)
}

/// Returns whether the wire type fits. A field with another wire type is skipped as unknown.
fn fits(field: &Field, wire: Wire) -> bool {
    wire == Wire::of(&field.kind) || (wire == Wire::Length && field.cardinality.is_list())
}

/// Returns a single field of a message; `None` if it is absent.
pub(crate) fn only<'a>(field: &Field, proto: &'a [u8]) -> Result<Option<Value<'a>>, Malformed> {
    let (mut input, mut found) = (Input(proto), None);
    while !input.is_empty() {
        let (number, wire) = input.tag()?;
        let value = input.value(wire)?;
        if number == field.number && wire == Wire::of(&field.kind) {
            found = Some(value);
        }
    }
    Ok(found)
}

/// Iterates over each occurrence of the field, in a part of a message.
pub(super) fn occurrences<'a>(
    field: &Field,
    proto: &'a [u8],
    mut each: impl FnMut(Value<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut input = Input(proto);
    while !input.is_empty() {
        let (number, wire) = input.tag()?;
        let found = input.value(wire)?;
        if number == field.number && fits(field, wire) {
            each(found)?;
        }
    }
    Ok(())
}
