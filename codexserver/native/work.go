package native

import (
	"context"
	"log/slog"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
)

// work is what runs outside turns, until the conversation is closed.
type work struct {
	life       context.Context // ends with Close
	end        context.CancelFunc
	background sync.WaitGroup // the goroutines that run outside turns
	left       run.Leftovers  // processes that commands left running
	servers    mcpServers
}

// stop ends the work and the processes that commands left running.
func (w *work) stop(log *slog.Logger) {
	w.end()
	w.background.Wait()
	w.left.Close()
	w.servers.close(log)
}
