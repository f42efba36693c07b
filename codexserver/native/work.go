package native

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
)

// work is what runs outside turns, until the conversation is closed.
type work struct {
	life       context.Context // ends with Close
	end        context.CancelFunc
	background sync.WaitGroup // the goroutines that run outside turns
	left       proc.Leftovers // processes that commands left running
	servers    *mcpServers
}

// stop ends the work and the processes that commands left running. It first waits notifyGrace
// for a notify program that has just started.
func (w *work) stop(log *slog.Logger) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.background.Wait()
	}()
	timer := time.NewTimer(notifyGrace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	w.end()
	<-done
	w.left.Close()
	w.servers.close(log)
}
