package passkey

import (
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadCBOR(t *testing.T) {
	for _, tt := range []struct {
		hex  string
		want any // nil: it is no CBOR that authenticators write
		rest int
	}{
		{"00", int64(0), 0},
		{"17", int64(23), 0},
		{"1818", int64(24), 0},
		{"190100", int64(256), 0},
		{"1a00010000", int64(1 << 16), 0},
		{"1b0000000100000000", int64(1 << 32), 0},
		{"1b7fffffffffffffff", int64(1<<63 - 1), 0},
		{"26", int64(-7), 0},
		{"390100", int64(-257), 0},
		{"3b7fffffffffffffff", int64(-1 << 63), 0},
		{"420102ff", []byte{1, 2}, 1},
		{"6161", "a", 0},
		{"820102", []any{int64(1), int64(2)}, 0},
		{"a20126616140", map[any]any{int64(1): int64(-7), "a": []byte{}}, 0},
		{"81818100", []any{[]any{[]any{int64(0)}}}, 0},
		{"f4", false, 0},
		{"f5", true, 0},

		{"", nil, 0},
		{"1817", nil, 0},               // 23 in a longer form
		{"1900ff", nil, 0},             // 255 in a longer form
		{"1a0000ffff", nil, 0},         // 65535
		{"1b00000000ffffffff", nil, 0}, // 2^32-1
		{"1b8000000000000000", nil, 0}, // more than an int64
		{"3b8000000000000000", nil, 0},
		{"18", nil, 0},
		{"1901", nil, 0},
		{"1c", nil, 0},
		{"4201", nil, 0},
		{"5bffffffffffffffff", nil, 0},
		{"61ff", nil, 0},
		{"5f4101ff", nil, 0}, // of indefinite length
		{"9f01ff", nil, 0},
		{"bf0101ff", nil, 0},
		{"9bffffffffffffffff", nil, 0},
		{"bbffffffffffffffff", nil, 0},
		{"8101", []any{int64(1)}, 0},
		{"8201", nil, 0},
		{"a10102", map[any]any{int64(1): int64(2)}, 0},
		{"a101", nil, 0},
		{"a201020103", nil, 0}, // a key twice
		{"a1410102", nil, 0},   // a key of bytes
		{"a1810102", nil, 0},
		{"818181818100", nil, 0}, // too deep
		{"c001", nil, 0},         // a tag
		{"f90000", nil, 0},       // a float
		{"f7", nil, 0},
		{"f820", nil, 0},
	} {
		b, err := hex.DecodeString(tt.hex)
		if err != nil {
			t.Fatal(err)
		}
		got, rest, err := readCBOR(b)
		if (err == nil) != (tt.want != nil) || len(rest) != tt.rest || cmp.Diff(tt.want, got) != "" {
			t.Errorf("%s: %#v, rest %x, %v; want %#v", tt.hex, got, rest, err, tt.want)
		}
	}
	if v, rest, err := readCBOR([]byte{0xf6, 1}); v != nil || len(rest) != 1 || err != nil {
		t.Errorf("null: %v, %x, %v", v, rest, err)
	}
}
