package access

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// failureBurst is how many refused tokens an address may send at once.
	failureBurst = 32
	// failureInterval is how long an address waits for each further one.
	failureInterval = time.Second
	// maxRemotes bounds how many addresses have a limiter of their own.
	maxRemotes = 4096
)

// failures counts refused tokens by remote address. The zero value is ready to use.
type failures struct {
	mu      sync.Mutex
	remotes map[string]*rate.Limiter
	rest    *rate.Limiter // shared by the addresses beyond maxRemotes; nil until needed
}

// wait returns how long an address must wait before its tokens are checked again, or 0.
func (f *failures) wait(remote string) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.limiter(remote, false); l != nil && l.Tokens() < 1 {
		return failureInterval
	}
	return 0
}

// count records that a token from an address was refused.
func (f *failures) count(remote string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limiter(remote, true).Allow()
}

// limiter returns the limiter of an address. Without add it does not make one, and may
// return nil. The caller holds f.mu.
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
				delete(f.remotes, other) // its last failure was long ago
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

// network returns the addresses that one client may use: an IPv4 address, or the /64 of an
// IPv6 address.
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
