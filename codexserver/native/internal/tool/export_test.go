package tool

import "time"

// SetFirstLook replaces how long a call waits before it leaves its command in the background.
func (t *Turn) SetFirstLook(d time.Duration) { t.box.firstLook = d }
