package access

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// What one address may fail: a burst, and then one more in each interval.
const (
	failureBurst    = 32
	failureInterval = time.Second
	maxRemotes      = 4096
)

// failures counts, by remote address, the requests with a token that was refused.
// The zero value is ready.
type failures struct {
	mu      sync.Mutex
	remotes map[string]*rate.Limiter
	rest    *rate.Limiter // of the addresses that there is no room for
}

// wait returns for how long requests of an address are refused, 0 when they are not.
func (f *failures) wait(remote string) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.limiter(remote, false); l != nil && l.Tokens() < 1 {
		return failureInterval
	}
	return 0
}

// count notes that a token of an address was refused.
func (f *failures) count(remote string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limiter(remote, true).Allow()
}

// limiter returns the limiter of an address. Without add it may be nil. f.mu is held.
func (f *failures) limiter(remote string, add bool) *rate.Limiter {
	key := network(remote)
	l := f.remotes[key]
	if l != nil || !add {
		if l == nil && len(f.remotes) >= maxRemotes {
			return f.rest
		}
		return l
	}
	if len(f.remotes) >= maxRemotes {
		for other, l := range f.remotes {
			if l.Tokens() >= failureBurst {
				delete(f.remotes, other) // it has not failed for long
			}
		}
	}
	fresh := rate.NewLimiter(rate.Every(failureInterval), failureBurst)
	if len(f.remotes) >= maxRemotes {
		if f.rest == nil {
			f.rest = fresh
		}
		return f.rest
	}
	if f.remotes == nil {
		f.remotes = map[string]*rate.Limiter{}
	}
	f.remotes[key] = fresh
	return fresh
}

// network is what one client has: an IPv4 address, or the /64 of an IPv6 address.
func network(remote string) string {
	addr, err := netip.ParseAddr(remote)
	if err != nil {
		return "unknown"
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	prefix, _ := addr.Prefix(64) // 64 fits every IPv6 address
	return prefix.String()
}
