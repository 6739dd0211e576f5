//! The wire format: tags, varints, lengths. Knows nothing of messages.

use super::Malformed;

/// Groups in unknown fields are skipped down to this depth.
const GROUP_DEPTH_MAX: u32 = 64;

/// A field's content as it is on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    /// 32 bits, or a group: of no field here, and skipped.
    Other(u8),
}

impl Wire<'_> {
    /// The number of the wire type, which errors name.
    pub(super) const fn kind(self) -> u8 {
        match self {
            Wire::Varint(_) => 0,
            Wire::Fixed64(_) => 1,
            Wire::Bytes(_) => 2,
            Wire::Other(kind) => kind,
        }
    }
}

/// What is left to read of a message.
pub(super) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// The next field's number and content, or none at the end of the message.
    pub(super) fn field(&mut self) -> Result<Option<(u32, Wire<'a>)>, Malformed> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (number, kind) = self.tag()?;
        if kind == 4 {
            return Err(Malformed::new("proto: wiretype end group for non-group"));
        }
        Ok(Some((number, self.content(kind, GROUP_DEPTH_MAX)?)))
    }

    fn tag(&mut self) -> Result<(u32, u8), Malformed> {
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| (1..1 << 29).contains(number));
        let kind = (tag & 7) as u8;
        let illegal = || Malformed::new(format!("proto: illegal tag {} (wire type {kind})", tag >> 3));
        Ok((number.ok_or_else(illegal)?, kind))
    }

    fn content(&mut self, kind: u8, depth: u32) -> Result<Wire<'a>, Malformed> {
        match kind {
            0 => self.varint().map(Wire::Varint),
            1 => {
                let bytes = self.take(8)?.try_into().map_err(|_| Malformed::truncated())?;
                Ok(Wire::Fixed64(u64::from_le_bytes(bytes)))
            }
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Malformed::truncated())?;
                self.take(length).map(Wire::Bytes)
            }
            3 if depth == 0 => Err(Malformed::too_deep()),
            3 => loop {
                let (_, inner) = self.tag()?;
                if inner == 4 {
                    break Ok(Wire::Other(3));
                }
                self.content(inner, depth - 1)?;
            },
            5 => self.take(4).map(|_| Wire::Other(5)),
            _ => Err(Malformed::new(format!("proto: illegal wireType {kind}"))),
        }
    }

    /// A varint of at most 64 bits.
    pub(super) fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or_else(Malformed::truncated)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed::new("proto: integer overflow"))
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(Malformed::truncated)?;
        self.0 = rest;
        Ok(taken)
    }
}
