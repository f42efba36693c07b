package shared_test

import "errors"

func forge([]string) error { return errors.ErrUnsupported }
