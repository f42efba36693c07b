package stack_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/stack"
)

func TestApart(t *testing.T) {
	ran := false
	if stack.Apart(func() { ran = true }); !ran {
		t.Error("the function did not run")
	}
	defer func() {
		words, _ := recover().(string)
		if !strings.HasPrefix(words, "broken\n") || !strings.Contains(words, "stack_test.breaks") {
			t.Errorf("panic: %s", words)
		}
	}()
	stack.Apart(breaks)
	t.Error("the caller does not panic")
}

func breaks() { panic("broken") }
