CREATE SCHEMA IF NOT EXISTS {schema};

-- The largest token of each lock, and since when. Only Prune deletes rows.
CREATE TABLE IF NOT EXISTS {schema}.fence (
	lock  text COLLATE "C" PRIMARY KEY,
	token bigint NOT NULL,
	since timestamptz NOT NULL
);

-- The locks that share each resource, in the order of their names, one a line.
CREATE TABLE IF NOT EXISTS {schema}.binding (
	resource text COLLATE "C" PRIMARY KEY,
	locks    text COLLATE "C" NOT NULL
);

-- What sqlguard.Check asks, for whatever speaks SQL:
--   SELECT {schema}.check_fence('{"holds": {"shop/orders/42": 1795999458837}, "resources": ["orders/42"]}')
-- It fails for a stale token (SQLSTATE PAWL1), for another lock (PAWL2) and for
-- what can be nobody's or is no such request (PAWL3), and so leaves a transaction
-- that cannot commit.
--
-- The holder whose token is there already only shares the row. An advisory lock in
-- front of it has a newer one wait in line: sharers alone would let each other pass
-- for ever. REPEATABLE READ and SERIALIZABLE would go on to read from before that
-- wait, without the last write of the holder before, so a token that is new to them
-- fails there (PAWL4): make this check at READ COMMITTED, commit, and begin again.
CREATE OR REPLACE FUNCTION {schema}.check_fence(request jsonb) RETURNS void LANGUAGE plpgsql AS $check$
DECLARE
	held     record;
	seen     bigint;
	place    text;
	bound    text;
	idle     text := COALESCE(request->>'idle', '30s');
	now_idle text := current_setting('idle_in_transaction_session_timeout');
	declared text[];
	wrong    text; -- with the request
BEGIN
	wrong := CASE
		WHEN jsonb_typeof(request) IS DISTINCT FROM 'object' THEN 'the request is no object'
		WHEN jsonb_typeof(request->'holds') IS DISTINCT FROM 'object' THEN 'holds is no object'
		WHEN request->'holds' = '{}' THEN 'no lock is held'
		WHEN jsonb_typeof(request->'resources') IS DISTINCT FROM 'array' THEN 'resources is no array'
		WHEN request->'resources' = '[]' THEN 'no resource is named'
		WHEN request ? 'locks' AND jsonb_typeof(request->'locks') <> 'array' THEN 'locks is no array'
		WHEN request->'locks' = '[]' THEN 'locks names none'
		WHEN idle !~ '^[1-9][0-9]{0,9}(ms|s|min)$' THEN format('idle is %L, want such as "30s"', idle)
	END;
	IF wrong IS NULL THEN
		wrong := COALESCE(
			(SELECT format('there is no member %I', key) FROM jsonb_object_keys(request) AS key
				WHERE key NOT IN ('holds', 'resources', 'locks', 'idle', 'mark') LIMIT 1),
			(SELECT format('%s of %I', value, key) FROM jsonb_each(request->'holds')
				WHERE jsonb_typeof(value) <> 'number' OR value::text !~ '^[1-9][0-9]{0,14}$' LIMIT 1),
			(SELECT format('the name %s', name) FROM (
				SELECT to_jsonb(key) FROM jsonb_object_keys(request->'holds') AS key
				UNION ALL SELECT value FROM jsonb_array_elements(request->'locks')
				UNION ALL SELECT value FROM jsonb_array_elements(request->'resources')
			) AS names(name) WHERE jsonb_typeof(name) <> 'string' OR octet_length(name #>> '{}') NOT BETWEEN 1 AND 576
				OR name #>> '{}' ~ '[\u0001-\u001f\u007f-\u009f]' LIMIT 1));
	END IF;
	IF wrong IS NOT NULL THEN
		RAISE EXCEPTION 'invalid fencing token: %', wrong USING ERRCODE = 'PAWL3';
	END IF;
	declared := ARRAY(SELECT DISTINCT value COLLATE "C" FROM jsonb_array_elements_text(request->'locks') ORDER BY 1);
	IF now_idle = '0' OR now_idle::interval > idle::interval THEN
		PERFORM set_config('idle_in_transaction_session_timeout', idle, true);
	END IF;
	FOR held IN
		SELECT key AS lock, value::bigint AS token FROM jsonb_each_text(request->'holds') ORDER BY key COLLATE "C"
	LOOP
		IF NOT request ? 'locks' THEN
			declared := declared || held.lock;
		ELSIF held.lock <> ALL (declared) THEN
			RAISE EXCEPTION 'guarded by another lock: %',
				jsonb_build_object('resource', request->'resources'->0, 'bound', array_to_string(declared, E'\n'))
				USING ERRCODE = 'PAWL2';
		END IF;
		SELECT f.token INTO seen FROM {schema}.fence AS f WHERE f.lock = held.lock;
		IF seen = held.token THEN
			PERFORM pg_advisory_xact_lock_shared(hashtextextended(held.lock, {seed}));
			SELECT f.token INTO seen FROM {schema}.fence AS f WHERE f.lock = held.lock FOR SHARE;
			IF seen IS NULL OR seen < held.token THEN
				RAISE EXCEPTION 'the fence was reset or pruned meanwhile' USING ERRCODE = 'serialization_failure';
			END IF;
		ELSIF seen IS NULL OR seen < held.token THEN
			IF current_setting('transaction_isolation') NOT LIKE 'read%' THEN
				RAISE EXCEPTION 'a new token is claimed at READ COMMITTED first: % of %', held.token, held.lock
					USING ERRCODE = 'PAWL4';
			END IF;
			PERFORM pg_advisory_xact_lock(hashtextextended(held.lock, {seed}));
			INSERT INTO {schema}.fence AS f (lock, token, since) VALUES (held.lock, held.token, clock_timestamp())
				ON CONFLICT (lock) DO UPDATE SET token = GREATEST(f.token, EXCLUDED.token),
					since = CASE WHEN f.token < EXCLUDED.token THEN EXCLUDED.since ELSE f.since END
				RETURNING f.token INTO seen;
		END IF;
		IF seen > held.token THEN
			RAISE EXCEPTION 'stale fencing token: %', jsonb_build_object('lock', held.lock, 'token', held.token, 'seen', seen)
				USING ERRCODE = 'PAWL1';
		END IF;
	END LOOP;
	FOR place IN SELECT DISTINCT value COLLATE "C" FROM jsonb_array_elements_text(request->'resources') ORDER BY 1 LOOP
		SELECT b.locks INTO bound FROM {schema}.binding AS b WHERE b.resource = place;
		IF bound IS NULL THEN
			INSERT INTO {schema}.binding AS b (resource, locks) VALUES (place, array_to_string(declared, E'\n'))
				ON CONFLICT (resource) DO UPDATE SET locks = b.locks RETURNING b.locks INTO bound;
		END IF;
		IF NOT string_to_array(bound, E'\n') <@ declared THEN
			RAISE EXCEPTION 'guarded by another lock: %', jsonb_build_object('resource', place, 'bound', bound)
				USING ERRCODE = 'PAWL2';
		END IF;
		IF NOT declared <@ string_to_array(bound, E'\n') THEN
			UPDATE {schema}.binding AS b SET locks = array_to_string(declared, E'\n')
				WHERE b.resource = place AND b.locks = bound;
			IF NOT FOUND THEN
				RAISE EXCEPTION 'the resource was bound to more locks meanwhile' USING ERRCODE = 'serialization_failure';
			END IF;
		END IF;
	END LOOP;
	PERFORM set_config('pawl.checked', concat(current_setting('pawl.checked', true), request->>'mark', ' '), true);
END
$check$;
