package codec_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/mcptypes/internal/codec"
)

// An error names the place of what is wrong.
func ExampleReadList() {
	for _, text := range []string{`[1, 2]`, `[1, "2"]`} {
		var list []int64
		wrong := codec.Read([]byte(text), true, func(d *codec.Decoder) error {
			return codec.ReadList(&list, d, codec.Int)
		})
		if wrong != nil {
			fmt.Println(wrong.Path(), wrong.Msg)
		} else {
			fmt.Println(list)
		}
	}
	// Output:
	// [1 2]
	// /1 want an integer, found a string
}
