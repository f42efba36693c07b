//go:build !linux

package run

import (
	"context"
	"errors"
	"net"
	"os"
)

// sockets serves the sockets of no command on this system.
type sockets struct{}

func (*sockets) serve(func(context.Context, net.Conn)) (*os.File, error) {
	return nil, errors.New("the sockets of a command cannot be served on this system")
}

func (*sockets) close() {}
