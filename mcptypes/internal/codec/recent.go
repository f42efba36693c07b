package codec

import (
	"encoding/binary"
	"math/bits"
)

// recent are short strings that a decoder has read. The messages of a connection have the same
// names, ids and versions again and again, and a string that is read again is not allocated.
type recent [128]string

// text returns b as a string. A longer text is not kept, so that a decoder keeps at most 8 kB.
func (r *recent) text(b []byte) string {
	const short = 64
	if len(b) > short {
		return string(b)
	}
	var h uint64
	if len(b) >= 8 {
		h = binary.LittleEndian.Uint64(b) ^ bits.RotateLeft64(binary.LittleEndian.Uint64(b[len(b)-8:]), 23)
	} else {
		for _, c := range b {
			h = h<<8 | uint64(c)
		}
	}
	kept := &r[h*0x9e3779b97f4a7c15>>57]
	if *kept != string(b) {
		*kept = string(b)
	}
	return *kept
}
