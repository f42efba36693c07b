//go:build !linux

package main

import (
	"errors"
	"time"
)

func (s *server) cpu() (time.Duration, error) {
	return 0, errors.New("CPU time is measured only on Linux")
}
