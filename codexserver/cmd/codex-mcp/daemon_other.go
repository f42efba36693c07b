//go:build !linux && !darwin

package main

import (
	"context"
	"errors"
	"net"
)

var errNoSockets = errors.New("Unix sockets of Codex are supported on Linux and macOS only")

func dialSocket(context.Context, string) (net.Conn, int, error) { return nil, 0, errNoSockets }

func private(string) error { return errNoSockets }
