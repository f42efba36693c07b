package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// watched tells systemd that this process runs, twice in the time of the unit's WatchdogSec, until stop is called. systemd
// ends and restarts a process that hangs. Without WatchdogSec it does nothing.
func watched(getenv func(string) string) (stop func(), err error) {
	limit, _ := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64) // 0 if it is missing
	if limit <= 0 || getenv("WATCHDOG_PID") != strconv.Itoa(os.Getpid()) {
		return func() {}, nil
	}
	conn, err := net.Dial("unixgram", getenv("NOTIFY_SOCKET"))
	if err != nil {
		return nil, fmt.Errorf("connect to the watchdog of systemd at $NOTIFY_SOCKET: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(time.Duration(limit) * time.Microsecond / 2)
		defer ticker.Stop()
		for ctx.Err() == nil {
			_, _ = conn.Write([]byte("WATCHDOG=1")) // systemd ends a process of which it hears nothing
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
		_ = conn.Close()
	}()
	return func() {
		cancel()
		<-ended
	}, nil
}
