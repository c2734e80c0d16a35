package stentor.lab;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Collections;
import java.util.Map;

/** Points of interest as rows of the SQLite file that the factor insert names; the tables are those of docs/lab/your-own-service.md. */
final class Rows {
    private final Connection connection;
    private final PreparedStatement point;
    private final PreparedStatement note;
    private final boolean resume;
    private final long page;
    private final long pages;

    Rows(Map<String, String> factors) throws SQLException {
        resume = "resume".equals(factors.get("sync"));
        page = Reference.page(factors);
        pages = Reference.pages(factors);
        connection = open(factors.get("insert"));
        point = inserting(connection);
        note = connection.prepareStatement("UPDATE sync SET pages = ?, complete = ?");
    }

    /** Opens a file with its tables, or makes it; what follows is one transaction until it is committed. */
    static Connection open(String file) throws SQLException {
        Connection connection = DriverManager.getConnection("jdbc:sqlite:" + file);
        try (Statement tables = connection.createStatement()) {
            tables.executeUpdate("CREATE TABLE IF NOT EXISTS points (number INTEGER PRIMARY KEY, "
                + String.join(" TEXT NOT NULL, ", Content.FIELDS) + " TEXT NOT NULL)");
            tables.executeUpdate("CREATE TABLE IF NOT EXISTS sync (one INTEGER PRIMARY KEY CHECK (one = 1),"
                + " pages INTEGER NOT NULL, complete INTEGER NOT NULL)");
            tables.executeUpdate("INSERT OR IGNORE INTO sync VALUES (1, 0, 0)");
        }
        connection.setAutoCommit(false);
        return connection;
    }

    /** Prepares the insertion of a point, for put. */
    static PreparedStatement inserting(Connection connection) throws SQLException {
        String places = String.join(", ", Collections.nCopies(Content.FIELDS.length + 1, "?"));
        return connection.prepareStatement("INSERT OR REPLACE INTO points VALUES (" + places + ")");
    }

    static void put(PreparedStatement point, long number, String[] fields) throws SQLException {
        point.setLong(1, number);
        for (int at = 0; at < fields.length; at++) {
            point.setString(at + 2, fields[at]);
        }
        point.executeUpdate();
    }

    /** Gives the number of the exchange to begin with: with sync=resume the page after the last one that is there. */
    long first() throws SQLException {
        if (!resume) {
            return 0;
        }
        try (Statement statement = connection.createStatement();
                ResultSet there = statement.executeQuery("SELECT CASE WHEN complete THEN 0 ELSE pages END FROM sync")) {
            return there.next() ? there.getLong(1) : 0;
        } finally {
            connection.commit(); // Others may write until there is a page to keep.
        }
    }

    /** Keeps a page and the note that it is there, all or nothing. */
    void keep(long seq, Content answer) throws SQLException {
        try {
            long number = seq % pages * page;
            for (String[] fields : answer.points) {
                put(point, number++, fields);
            }
            note.setLong(1, seq % pages + 1);
            note.setBoolean(2, seq % pages + 1 == pages);
            note.executeUpdate();
            connection.commit();
        } catch (SQLException | RuntimeException | Error failed) { // Memory may end in the middle of a page.
            connection.rollback();
            throw failed;
        }
    }
}
