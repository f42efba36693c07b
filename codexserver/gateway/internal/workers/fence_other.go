//go:build !linux

package workers

import (
	"errors"
	"io"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure"
)

// FenceName is the name of the process that runs [RunFence].
const FenceName = "codex-mcp-gateway-fence"

// fence does not exist here, because this system has no workers.
type fence struct{}

func startFence(io.Writer) (*fence, error) { return nil, enclosure.ErrUnavailable }

func (*fence) add(int, time.Duration) (uint64, error) { return 0, enclosure.ErrUnavailable }

func (*fence) extend(uint64, time.Duration) error { return enclosure.ErrUnavailable }

func (*fence) close() error { return nil }

func (*fence) kill() {}

// RunFence fails here.
func RunFence() error { return errors.New("there are no workers on this system") }
