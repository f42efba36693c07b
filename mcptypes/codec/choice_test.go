package codec

import (
	"strings"
	"testing"
)

// nest is a choice of two objects that contain a nest and differ in a member after it.
type nest struct {
	arm  string
	next *nest
}

// readNest counts the arms that it reads.
func readNest(n *int, one bool) func(*nest, *Decoder) error {
	arm := func(required string) func(*nest, *Decoder) error {
		return func(v *nest, d *Decoder) error {
			*n++
			*v = nest{arm: required}
			return d.ReadObject(required, func(name []byte) error {
				switch string(name) {
				case "next":
					return Pointer(&v.next, d, readNest(n, one))
				case required:
					return d.Got(0, d.SkipValue())
				}
				return d.SkipValue()
			})
		}
	}
	return func(v *nest, d *Decoder) error { return AnyOf(v, d, one, arm("a"), arm("b"), arm("c")) }
}

// TestChoicesWithinChoices reads choices that are deep within each other. The arms that are read
// must not multiply with each level, or a short message would keep a program busy for ever.
func TestChoicesWithinChoices(t *testing.T) {
	const depth = 200
	for _, strict := range []bool{false, true} {
		for _, one := range []bool{false, true} {
			for _, tt := range []struct{ inner, member, want string }{
				{`{"c":1}`, `"c":1`, ""},
				{`{"c":1}`, `"b":1`, ""},
				{`{"d":1}`, `"c":1`, strings.Repeat("/next", depth) + "/a: required, but absent"},
				{`{"c":1}`, `"d":1`, strings.Repeat("/next", depth-1) + "/a: required, but absent"},
			} {
				text := strings.Repeat(`{"next":`, depth) + tt.inner + strings.Repeat(","+tt.member+"}", depth)
				var v nest
				n := 0
				err := Read("", []byte(text), strict, Into(&v, readNest(&n, one)))
				got := ""
				if err != nil {
					got = err.Error()
				}
				if got != tt.want {
					t.Errorf("%.40s: %q, want %q", text, got, tt.want)
				}
				if n > 9*(depth+1) {
					t.Errorf("%d arms were read at %d levels", n, depth)
				}
				if err == nil {
					levels := 0
					for at := &v; at.next != nil; at = at.next {
						if levels++; `"`+at.arm+`":1` != tt.member {
							t.Errorf("level %d: %s, want %s", levels, at.arm, tt.member)
						}
					}
					if levels != depth {
						t.Errorf("%d levels, want %d", levels, depth)
					}
				}
			}
		}
	}
}
