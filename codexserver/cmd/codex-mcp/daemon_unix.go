//go:build linux || darwin

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// dialSocket connects to a Unix socket of this user, and returns the process at its other end.
// Nobody else may be able to replace the socket.
func dialSocket(ctx context.Context, path string) (net.Conn, int, error) {
	if err := private(filepath.Dir(path)); err != nil {
		return nil, 0, err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, 0, fmt.Errorf("connect to the app-server: %w", err)
	}
	if err := private(filepath.Dir(real)); err != nil {
		return nil, 0, err
	}
	info, err := os.Lstat(real)
	if err != nil {
		return nil, 0, fmt.Errorf("connect to the app-server: %w", err)
	}
	if info.Mode().Type() != os.ModeSocket || owner(info) != os.Geteuid() {
		return nil, 0, fmt.Errorf("%s is not a socket of this user", real)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", real)
	if err != nil {
		return nil, 0, fmt.Errorf("connect to the app-server: %w", err)
	}
	uid, pid, err := peerOf(conn.(*net.UnixConn))
	if err == nil && uid != os.Geteuid() {
		err = fmt.Errorf("the app-server at %s belongs to the user %d", real, uid)
	}
	if err != nil {
		return nil, 0, errors.Join(err, conn.Close())
	}
	return conn, pid, nil
}

// private returns an error unless the folder belongs to this user, no other can write to it,
// and no other can replace it or a folder above it.
func private(folder string) error {
	folder, err := filepath.Abs(folder)
	if err == nil {
		folder, err = filepath.EvalSymlinks(folder)
	}
	if err != nil {
		return fmt.Errorf("the folder of the socket: %w", err)
	}
	for at := folder; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return fmt.Errorf("the folder of the socket: %w", err)
		}
		by, open := owner(info), info.Mode().Perm()&0o022 != 0
		if at != folder {
			open = open && info.Mode()&os.ModeSticky == 0
		}
		if open || by != os.Geteuid() && (by != 0 || at == folder) {
			return fmt.Errorf("other users can write to %s, so a socket below it is not trusted", at)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

func owner(info os.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}
