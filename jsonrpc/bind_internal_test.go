package jsonrpc

import (
	"errors"
	"testing"
)

// picky fails to decode, with an error that has a JSON pointer.
type picky struct{}

type pickyError struct{}

func (pickyError) Error() string       { return "picky: /b/0: not this one" }
func (pickyError) JSONPointer() string { return "/b/0" }

func (*picky) UnmarshalJSON([]byte) error { return pickyError{} }

func TestBindJoinsPaths(t *testing.T) {
	for _, tt := range []struct {
		into any
		path string
	}{
		{&picky{}, "/b/0"},
		{&struct {
			A picky `json:"a"`
		}{}, "/a/b/0"},
	} {
		err := bind([]byte(`{"a":1}`), tt.into)
		var e *Error
		if !errors.As(err, &e) || e.Code != CodeInvalidParams {
			t.Fatalf("%T: %v", tt.into, err)
		}
		if want := `{"path":"` + tt.path + `"}`; string(e.Data) != want || e.Message != "invalid params at "+tt.path+": not this one" {
			t.Errorf("%T: %s, data %s", tt.into, e.Message, e.Data)
		}
	}
}
