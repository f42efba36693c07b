package workers

import (
	"reflect"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// begun is what a worker was started with, as far as it depends on the users.
type begun struct {
	settings worker.Settings
	hidden   []string // paths that the worker does not see
}

// setUsers replaces the users.
func (p *Pool) setUsers(principals map[string]settings.Principal) {
	http := p.o.HTTP
	http.Principals = principals
	p.mu.Lock()
	defer p.mu.Unlock()
	p.http.Store(&http)
	for name := range principals {
		if p.slots[name] == nil {
			p.slots[name] = &slot{}
		}
	}
}

// Knows reports whether there is a user with a name.
func (p *Pool) Knows(name string) bool {
	_, known := p.http.Load().Principals[name]
	return known
}

// Reload returns a function that replaces the users. It fails for those that [New] refuses. apply
// returns the users whose worker must end at once: it works in another folder than it may now, has
// other locked arguments, or sees what it must not see any more. Other changes,
// such as those of limits, are for the next worker.
func (p *Pool) Reload(principals map[string]settings.Principal) (apply func() (end []string), err error) {
	now, err := p.check(principals)
	if err != nil {
		return nil, err
	}
	return func() (end []string) {
		p.setUsers(principals)
		http := p.http.Load()
		for name, w := range p.workers() {
			if _, known := principals[name]; w.alive() &&
				(!known || !w.began.allows(p.settingsOf(name, http, now), now.enclosure(name).Hidden)) {
				end = append(end, name)
			}
		}
		slices.Sort(end)
		return end
	}, nil
}

// allows reports whether a worker may go on that should now have these settings, and should not see
// these paths.
func (b *begun) allows(now worker.Settings, hidden []string) bool {
	now.Turns, now.Tasks = b.settings.Turns, b.settings.Tasks
	return reflect.DeepEqual(now, b.settings) && !slices.ContainsFunc(hidden, func(path string) bool {
		return !slices.ContainsFunc(b.hidden, func(before string) bool { return paths.Below(path, before) })
	})
}
