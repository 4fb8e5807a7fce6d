package guardtest

// endings are about what could make a guard forget: a delete, a new process, a
// read that came before the write.
var endings = []promise{
	{"a delete removes the text, not the token", func(x *trial) {
		x.write(lockA, 5, "five")
		x.accept(remove, lockA, 6)
		x.isEmpty()
		for _, c := range any3 {
			x.stale(c, lockA, 5, 6)
			x.isEmpty()
		}
		x.write(lockA, 6, "again")
		x.holds("again")
	}, false},
	{"a delete of what is not there is remembered too", func(x *trial) {
		x.accept(remove, lockA, 5)
		x.isEmpty()
		x.stale(write("four"), lockA, 4, 5)
		x.accept(remove, lockA, 5)
		x.accept(remove, lockA, 6)
		x.isEmpty()
		x.write(lockA, 7, "seven")
		x.holds("seven")
	}, false},
	{"a claim shuts the older holder out before the newer one writes", func(x *trial) {
		x.write(lockA, 4, "four")
		x.accept(claim, lockA, 5)
		x.holds("four")
		for _, c := range any3 {
			x.stale(c, lockA, 4, 5)
		}
		x.holds("four")
		x.accept(claim, lockA, 5)
		x.write(lockA, 5, "five")
		x.accept(claim, lockA, 5)
		x.holds("five")
		x.accept(remove, lockA, 5)
		x.isEmpty()
	}, false},
	{"a claim of what is not there creates nothing", func(x *trial) {
		x.accept(claim, lockA, 5)
		x.isEmpty()
		for _, c := range any3 {
			x.stale(c, lockA, 4, 5)
		}
		x.accept(claim, lockA, 6)
		x.isEmpty()
		x.stale(write("five"), lockA, 5, 6)
		x.write(lockA, 6, "six")
		x.holds("six")
	}, false},
	{"a claim of what was deleted does not bring it back", func(x *trial) {
		x.write(lockA, 4, "four")
		x.accept(remove, lockA, 4)
		x.accept(claim, lockA, 5)
		x.isEmpty()
		x.stale(write("four"), lockA, 4, 5)
		x.isEmpty()
	}, false},
	{"a process that has just started knows every token", func(x *trial) {
		for _, c := range any3 {
			x.fresh()
			x.write(lockA, 8, "eight")
			x.accept(c, lockA, 9)
			x.restart()
			for _, late := range any3 {
				x.stale(late, lockA, 8, 9)
			}
			x.restart()
			x.accept(claim, lockA, 9)
			x.write(lockA, 9, "nine")
			x.restart()
			x.holds("nine")
		}
	}, false},
}
