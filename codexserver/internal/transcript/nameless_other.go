//go:build !unix

package transcript

import (
	"errors"
	"os"
)

// nameless fails: on this system an open file keeps its name.
func nameless(string) (*os.File, error) { return nil, errors.ErrUnsupported }
