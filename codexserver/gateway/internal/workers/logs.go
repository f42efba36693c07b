package workers

import (
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
)

// served returns what the pool does for the worker of a user. A worker has no descriptor of the log: it could open the
// file again by it, and read, empty and rewrite what all users have written. nonsense learns of what no worker sends.
func (p *Pool) served(name string, kept worker.Store, nonsense func(error)) worker.Served {
	s := worker.Served{Store: kept, Nonsense: nonsense}
	if p.record == nil {
		return s
	}
	to := record.On(p.record)
	s.Record = func(line []byte) error {
		line, err := record.Stamp(line, time.Now(), name)
		if err != nil {
			nonsense(err)
			return err
		}
		_, err = to.Write(append(line, '\n'))
		return err
	}
	return s
}
