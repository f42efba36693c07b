//go:build !linux

package workers

import (
	"context"
	"errors"
	"net"
	"os"
)

// workerSocket is empty, because this system does not support workers.
type workerSocket struct{}

func listenWorker(string) (*net.UnixListener, *workerSocket, error) {
	return nil, nil, errors.ErrUnsupported
}

func (*workerSocket) dial(context.Context) (net.Conn, error) { return nil, errors.ErrUnsupported }

func (*workerSocket) close() {}

func socketPair() (net.Conn, *os.File, error) { return nil, nil, errors.ErrUnsupported }
