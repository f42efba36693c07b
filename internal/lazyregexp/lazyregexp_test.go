package lazyregexp_test

import (
	"fmt"
	"testing"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
)

var name = lazyregexp.Regexp{Text: `^[a-z]+$`}

func Example() {
	fmt.Println(name.Get().MatchString("main"), name.Get().MatchString("not a name"))
	// Output: true false
}

func TestGet(t *testing.T) {
	t.Parallel()
	r := lazyregexp.Regexp{Text: `a+`}
	if first, second := r.Get(), r.Get(); first != second {
		t.Error("compiled twice")
	}
	defer func() {
		if recover() == nil {
			t.Error("a wrong expression does not panic")
		}
	}()
	wrong := lazyregexp.Regexp{Text: `(`}
	wrong.Get()
}
