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
-- what can be nobody's (PAWL3), and so leaves a transaction that cannot commit. The holder whose token is there
-- already only shares the row. An advisory lock in front of it has a newer one
-- wait in line: sharers alone would let each other pass for ever.
CREATE OR REPLACE FUNCTION {schema}.check_fence(request jsonb) RETURNS void LANGUAGE plpgsql AS $check$
DECLARE
	held     record;
	seen     bigint;
	place    text;
	bound    text;
	idle     text := COALESCE(request->>'idle', '30s');
	now_idle text := current_setting('idle_in_transaction_session_timeout');
	declared text[] := '{}';
	nobody   CONSTANT text := '[\u0001-\u001f\u007f-\u009f]'; -- has such a name
BEGIN
	IF request ? 'locks' THEN
		declared := ARRAY(SELECT value COLLATE "C" FROM jsonb_array_elements_text(request->'locks') ORDER BY 1);
	END IF;
	IF now_idle = '0' OR now_idle::interval > idle::interval THEN
		PERFORM set_config('idle_in_transaction_session_timeout', idle, true);
	END IF;
	FOR held IN
		SELECT key AS lock, value::bigint AS token FROM jsonb_each_text(request->'holds') ORDER BY key COLLATE "C"
	LOOP
		IF held.token NOT BETWEEN 1 AND 999999999999999 OR octet_length(held.lock) NOT BETWEEN 1 AND 576
			OR held.lock ~ nobody
		THEN
			RAISE EXCEPTION 'invalid fencing token: % of %', held.token, held.lock USING ERRCODE = 'PAWL3';
		END IF;
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
	IF seen IS NULL THEN
		RAISE EXCEPTION 'invalid fencing token: no lock is held' USING ERRCODE = 'PAWL3';
	END IF;
	FOR place IN SELECT DISTINCT value COLLATE "C" FROM jsonb_array_elements_text(request->'resources') ORDER BY 1 LOOP
		IF octet_length(place) NOT BETWEEN 1 AND 576 OR place ~ nobody THEN
			RAISE EXCEPTION 'invalid fencing token: the name of resource %', place USING ERRCODE = 'PAWL3';
		END IF;
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
	IF bound IS NULL THEN
		RAISE EXCEPTION 'invalid fencing token: no resource is named' USING ERRCODE = 'PAWL3';
	END IF;
	PERFORM set_config('pawl.checked', concat(current_setting('pawl.checked', true), request->>'mark', ' '), true);
END
$check$;
