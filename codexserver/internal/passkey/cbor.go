package passkey

import (
	"encoding/binary"
	"errors"
	"math"
	"unicode/utf8"
)

// maxDepth is how deep CBOR may be nested, as in CTAP2's canonical form.
const maxDepth = 4

var errCBOR = errors.New("not CBOR in the canonical form of CTAP2")

// readCBOR reads one value of CBOR in the form that authenticators write: lengths are definite and
// as short as possible, map keys are integers or texts and not repeated, and there are no tags or
// floats. A value is an int64, a []byte, a string, a bool, nil, a []any, or a map[any]any.
func readCBOR(b []byte) (value any, rest []byte, err error) { return readNested(b, maxDepth) }

func readNested(b []byte, depth int) (value any, rest []byte, err error) {
	major, n, b, err := readHead(b)
	if err != nil {
		return nil, nil, err
	}
	switch major {
	case 0, 1:
		if n > math.MaxInt64 {
			return nil, nil, errCBOR
		}
		if major == 1 {
			return -1 - int64(n), b, nil
		}
		return int64(n), b, nil
	case 2, 3:
		if n > uint64(len(b)) || major == 3 && !utf8.Valid(b[:n]) {
			return nil, nil, errCBOR
		}
		if major == 3 {
			return string(b[:n]), b[n:], nil
		}
		return b[:n:n], b[n:], nil
	case 4, 5:
		if depth == 0 || n > uint64(len(b)) { // each element has a byte at least
			return nil, nil, errCBOR
		}
		if major == 4 {
			return readArray(b, n, depth-1)
		}
		return readMap(b, n, depth-1)
	}
	switch n { // of major 7; readHead lets no other pass
	case 20, 21:
		return n == 21, b, nil
	case 22:
		return nil, b, nil
	}
	return nil, nil, errCBOR
}

func readArray(b []byte, n uint64, depth int) (value any, rest []byte, err error) {
	var all []any
	for range n {
		var v any
		if v, b, err = readNested(b, depth); err != nil {
			return nil, nil, err
		}
		all = append(all, v)
	}
	return all, b, nil
}

func readMap(b []byte, n uint64, depth int) (value any, rest []byte, err error) {
	all := map[any]any{}
	for range n {
		var key, v any
		if key, b, err = readNested(b, 0); err != nil {
			return nil, nil, err
		}
		switch key.(type) {
		case int64, string:
		default:
			return nil, nil, errCBOR
		}
		if _, twice := all[key]; twice {
			return nil, nil, errCBOR
		}
		if v, b, err = readNested(b, depth); err != nil {
			return nil, nil, err
		}
		all[key] = v
	}
	return all, b, nil
}

// readHead reads the major type of a value, and its number, length or simple value.
func readHead(b []byte) (major byte, n uint64, rest []byte, err error) {
	if len(b) == 0 {
		return 0, 0, nil, errCBOR
	}
	major, info, b := b[0]>>5, b[0]&31, b[1:]
	if major == 6 || major == 7 && info >= 24 || info >= 28 {
		return 0, 0, nil, errCBOR
	}
	if info < 24 {
		return major, uint64(info), b, nil
	}
	size := 1 << (info - 24)
	if len(b) < size {
		return 0, 0, nil, errCBOR
	}
	least := uint64(24) // that does not fit into a shorter form
	switch size {
	case 1:
		n = uint64(b[0])
	case 2:
		n, least = uint64(binary.BigEndian.Uint16(b)), 1<<8
	case 4:
		n, least = uint64(binary.BigEndian.Uint32(b)), 1<<16
	case 8:
		n, least = binary.BigEndian.Uint64(b), 1<<32
	}
	if n < least {
		return 0, 0, nil, errCBOR
	}
	return major, n, b[size:], nil
}
