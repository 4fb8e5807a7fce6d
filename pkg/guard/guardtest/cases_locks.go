package guardtest

// locks are about tokens that cannot be compared.
var locks = []promise{
	{"a resource takes the tokens of one lock, that of its first write", func(x *trial) {
		x.write(lockA, 5, "five")
		for _, late := range []string{lockB, lockC} {
			for _, c := range any3 {
				x.other(c, late, 4, lockA)
				x.other(c, late, 5, lockA)
				x.other(c, late, 100, lockA)
			}
		}
		x.holds("five")
		x.write(lockA, 5, "still five")
		x.holds("still five")
	}},
	{"neither a delete nor a restart frees a resource for another lock", func(x *trial) {
		x.write(lockA, 5, "five")
		x.accept(remove, lockA, 5)
		x.other(write("taken over"), lockB, 100, lockA)
		x.restart()
		x.other(write("taken over"), lockB, 100, lockA)
		x.isEmpty()
		x.write(lockA, 5, "again")
	}},
	{"where several locks are declared each token is compared with its own", func(x *trial) {
		x.fresh(lockA, lockB)
		x.write(lockA, 100, "a 100")
		x.write(lockB, 5, "b 5")
		x.holds("b 5")
		for _, c := range any3 {
			x.stale(c, lockA, 99, 100)
			x.stale(c, lockB, 4, 5)
		}
		x.holds("b 5")
		x.write(lockA, 100, "a again")
		x.write(lockB, 6, "b 6")
		x.accept(claim, lockA, 101)
		x.write(lockB, 6, "b again")
		x.holds("b again")
	}},
	{"where several locks are declared nothing of one forgets another's token", func(x *trial) {
		for _, c := range any3 {
			x.fresh(lockA, lockB)
			x.write(lockA, 100, "a")
			x.write(lockB, 5, "b")
			x.accept(c, lockA, 101)
			x.stale(write("late"), lockB, 4, 5)
			x.accept(c, lockB, 6)
			x.stale(write("late"), lockA, 100, 101)
			x.restart()
			x.stale(write("late"), lockA, 100, 101)
			x.stale(write("late"), lockB, 5, 6)
		}
	}},
	{"a lock that was not declared is refused", func(x *trial) {
		for _, first := range any3 {
			x.fresh(lockA, lockB)
			x.other(first, lockC, 1, "")
			x.isEmpty()
			x.accept(first, lockB, 5)
			for _, c := range any3 {
				x.other(c, lockC, 100, "")
			}
			x.accept(claim, lockA, 1)
		}
	}},
}
