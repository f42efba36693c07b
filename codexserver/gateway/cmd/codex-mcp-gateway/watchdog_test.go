package main

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestWatched reads what systemd would read.
func TestWatched(t *testing.T) {
	address := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"}
	l, err := net.ListenUnixgram("unixgram", address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	own := strconv.Itoa(os.Getpid())
	for _, tt := range []struct {
		name, limit, pid string
		messages         int
	}{
		{"a unit with WatchdogSec", "2000", own, 3},
		{"a unit without it", "", "", 0},
		{"the process of another unit", "2000", "1", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := map[string]string{"WATCHDOG_USEC": tt.limit, "WATCHDOG_PID": tt.pid, "NOTIFY_SOCKET": address.Name}
			stop, err := watched(func(name string) string { return env[name] })
			if err != nil {
				t.Fatal(err)
			}
			text := make([]byte, 20)
			for range tt.messages {
				if n, err := l.Read(text); err != nil || string(text[:n]) != "WATCHDOG=1" {
					t.Errorf("%q, %v", text[:n], err)
				}
			}
			stop()
			if err := l.SetReadDeadline(time.Now()); err != nil {
				t.Fatal(err)
			}
			sent := 0
			for {
				if _, err := l.Read(text); err != nil {
					break
				}
				sent++
			}
			if tt.messages == 0 && sent > 0 {
				t.Errorf("%d messages", sent)
			}
			if err := l.SetReadDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
		})
	}
	env := map[string]string{"WATCHDOG_USEC": "2000", "WATCHDOG_PID": own, "NOTIFY_SOCKET": address.Name + "-none"}
	if _, err := watched(func(name string) string { return env[name] }); err == nil {
		t.Error("no error without a socket")
	}
}
