package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// figure is a figure of the part calls: work whose parts are timed, and what is read from that.
type figure struct {
	what   string
	users  int // that work at the same time
	calls  int // of each user
	do     func(ctx context.Context, c *session) (events int, err error)
	pieces int  // of an answer, whose events in a second are counted; 0 for the times of the calls
	cpu    bool // also the CPU time of a call
}

// samples are the values of a figure, by round.
type samples struct{ p50, p99, cpu []float64 }

// calls measures calls, one service after another in each round.
func (l *lab) calls(ctx context.Context, z size) (rows []row, err error) {
	l.script(z.events, nil, nil)
	call := func(prompt string) func(context.Context, *session) (int, error) {
		return func(ctx context.Context, c *session) (int, error) { return c.run(ctx, prompt, nil) }
	}
	figures := []figure{
		{what: "`ping`", users: 1, calls: 5 * z.calls, do: func(ctx context.Context, c *session) (int, error) { return 0, c.ping(ctx) }, cpu: true},
		{what: "`codex`", users: 1, calls: z.calls, do: call("say"), cpu: true},
		{what: "`codex` with an approval", users: 1, calls: z.calls, do: call("ask"), cpu: true},
		{what: fmt.Sprintf("`codex`, %d users at once", z.together), users: z.together, calls: max(z.calls/z.together, 1), do: call("say")},
		{what: "events/s", users: 1, calls: 1, do: call("stream"), pieces: z.events, cpu: true},
		{what: fmt.Sprintf("events/s, %d users at once", z.together), users: z.together, calls: 1, do: call("stream"), pieces: z.events},
	}
	var all []*service
	defer func() {
		for _, s := range all {
			err = errors.Join(err, s.close())
		}
	}()
	var clients [][]*session // of a service
	title := row{what: "calls"}
	for i, start := range []func() (*service, error){
		func() (*service, error) { return l.direct(ctx) },
		func() (*service, error) { return l.gateway(ctx, z.together, 0, "1h") },
		func() (*service, error) { return l.gateway(ctx, z.together, 1, "1h") },
		func() (*service, error) { return l.gateway(ctx, z.together, 3, "1h") },
	} {
		s, err := start()
		all = append(all, s)
		if err != nil {
			return nil, err
		}
		title.title = append(title.title, s.name)
		clients = append(clients, nil)
		for _, u := range s.users[:z.together] {
			c, err := s.session(ctx, u)
			if err == nil {
				_, err = c.run(ctx, "ask", nil) // warms up
			}
			if err != nil {
				return nil, err
			}
			clients[i] = append(clients[i], c)
		}
	}
	got := make([][]samples, len(figures)) // of a figure, of a service
	for range z.rounds {
		for n, f := range figures {
			if got[n] == nil {
				got[n] = make([]samples, len(all))
			}
			for i, s := range all {
				if err := f.sample(ctx, s, clients[i], &got[n][i]); err != nil {
					return nil, errors.Join(errors.New(f.what+", "+s.name), err)
				}
			}
		}
	}
	rows = []row{title}
	for n, f := range figures {
		names := []string{f.what + ", p50, ms", f.what + ", p99, ms", "CPU of " + f.what + ", ms"}
		if f.pieces > 0 {
			names = []string{f.what, "", "CPU of an event, µs"}
		}
		for k, of := range []func(samples) []float64{func(s samples) []float64 { return s.p50 }, func(s samples) []float64 { return s.p99 }, func(s samples) []float64 { return s.cpu }} {
			if k == 1 && f.pieces > 0 || k == 2 && !f.cpu {
				continue
			}
			r := row{what: names[k]}
			for i := range all {
				r.values = append(r.values, quantile(of(got[n][i]), 0.5))
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// sample does the work of a figure once.
func (f figure) sample(ctx context.Context, s *service, clients []*session, to *samples) error {
	before, err := s.cost(false)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var working sync.WaitGroup
	var took []float64 // ms
	events, began := 0, time.Now()
	for _, c := range clients[:f.users] {
		working.Go(func() {
			for range f.calls {
				began := time.Now()
				n, failed := f.do(ctx, c)
				mu.Lock()
				took, events, err = append(took, time.Since(began).Seconds()*1e3), events+n, errors.Join(err, failed)
				mu.Unlock()
			}
		})
	}
	working.Wait()
	lasted := time.Since(began).Seconds()
	after, failed := s.cost(false)
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	used := after.cpu - before.cpu
	if events < f.users*f.pieces {
		return fmt.Errorf("%d events of %d streams of %d pieces", events, f.users, f.pieces)
	}
	if f.pieces > 0 {
		to.p50, to.cpu = append(to.p50, float64(events)/lasted), append(to.cpu, used/float64(events)*1e6)
		return nil
	}
	to.p50, to.p99 = append(to.p50, quantile(took, 0.5)), append(to.p99, quantile(took, 0.99))
	to.cpu = append(to.cpu, used/float64(len(took))*1e3)
	return nil
}

// quantile returns the value that a share of all values do not exceed.
func quantile(all []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}
