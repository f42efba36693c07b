package assert_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/mcptypes/codec"
	"github.com/codexmcp/codexmcp/mcptypes/codec/assert"
)

// Only a strict decoder checks what has no form in Go.
func ExampleNew() {
	short := assert.New(`{"maxLength":3}`)
	for _, strict := range []bool{false, true} {
		var s string
		err := codec.Read("example", []byte(`"four"`), strict, func(d *codec.Decoder) error {
			return codec.Constrained(&s, d, short, codec.Str)
		})
		fmt.Println(err != nil)
	}
	// Output:
	// false
	// true
}
