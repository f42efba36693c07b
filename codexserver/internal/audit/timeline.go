package audit

import "time"

// Entry is what a timeline has at one place: a question with its decision, the effect that it allowed, or
// an effect without a question.
type Entry struct {
	// Decided, Began and Ended are lines of one effect. Nil ones are not there.
	Decided, Began, Ended *Line
	// Other is a line of another kind: what was refused, or what a turn has changed.
	Other *Line
}

// First returns the first line of the entry.
func (e *Entry) First() *Line {
	for _, l := range []*Line{e.Decided, e.Began, e.Ended} {
		if l != nil {
			return l
		}
	}
	return e.Other
}

// Filter chooses the lines of a timeline. The zero value chooses all.
type Filter struct {
	// Thread is the id of a thread, or its beginning.
	Thread string
	// Since is the time of the first line.
	Since time.Time
}

func (f *Filter) has(l *Line) bool {
	return len(l.Thread) >= len(f.Thread) && l.Thread[:len(f.Thread)] == f.Thread && !l.Time.Before(f.Since)
}

// MaxEntries bounds a timeline: it has the last ones.
const MaxEntries = 20_000

// Timeline returns the entries of a record, in the order of their first lines, and how many older ones are left
// out.
func Timeline(paths []string, f Filter) (entries []*Entry, omitted int, err error) {
	decided, begun := map[string]*Entry{}, map[string]*Entry{}
	err = Read(paths, func(l Line) error {
		switch e := begun[l.Of]; {
		case !f.has(&l):
			return nil
		case l.Effect == Ends && e != nil:
			e.Ended = &l
			delete(begun, l.Of)
			return nil
		}
		e := &Entry{}
		switch l.Effect {
		case "":
			if l.Question == nil {
				return nil
			}
			e.Decided = &l
			if l.ID != "" {
				decided[l.ID] = e
			}
		case Begins:
			if by := decided[l.DecidedBy]; l.DecidedBy != "" && by != nil {
				by.Began = &l
				delete(decided, l.DecidedBy)
				begun[l.ID] = by
				return nil
			}
			e.Began = &l
			begun[l.ID] = e
		case Ends:
			e.Ended = &l
		default:
			e.Other = &l
		}
		entries = append(entries, e)
		if len(entries) > 2*MaxEntries {
			omitted += MaxEntries
			entries = append([]*Entry(nil), entries[MaxEntries:]...)
		}
		return nil
	})
	if more := len(entries) - MaxEntries; more > 0 {
		entries, omitted = entries[more:], omitted+more
	}
	return entries, omitted, err
}
